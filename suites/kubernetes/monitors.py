"""Cases of monitors: what the kubelet does to the pods of a target is in the report, and so is what it does to a generator."""
import json
import time

import rig
from place import place, wait_for

SECURITY = {'runAsNonRoot': True, 'runAsUser': 65532, 'seccompProfile': {'type': 'RuntimeDefault'}}
# A process that ends, or uses up its memory, when it is asked to. As the first one of its container it ignores SIGTERM.
SERVER = 'until [ -e /tmp/end ] || [ -e /tmp/eat ]; do sleep 0.2; done; [ ! -e /tmp/eat ] || exec tail -c 200000000 /dev/zero; exit 3'
SECONDS = 100


def _pod(policy):
    container = {
        'name': 'web', 'image': 'busybox:stable', 'command': ['/bin/sh', '-c', SERVER], 'resources': {'limits': {'memory': '32Mi', 'cpu': '1'}},
        'securityContext': {'allowPrivilegeEscalation': False, 'capabilities': {'drop': ['ALL']}},
    }
    return {'restartPolicy': policy, 'terminationGracePeriodSeconds': 12, 'securityContext': SECURITY, 'containers': [container]}


def _create(at, kind, name, spec):
    of = {'apiVersion': 'apps/v1' if kind == 'Deployment' else 'v1', 'kind': kind, 'metadata': {'name': name, 'labels': {'app': 'shop'}}, 'spec': spec}
    at.kubectl('create', '--filename=-', input=json.dumps(of))


def _shop(at):
    """A Deployment, and a pod that nothing starts again."""
    labels = {'app': 'shop'}
    template = {'metadata': {'labels': labels}, 'spec': _pod('Always')}
    _create(at, 'Deployment', 'shop', {'replicas': 1, 'selector': {'matchLabels': labels}, 'template': template})
    _create(at, 'Pod', 'batch', _pod('Never'))
    rig.wait(lambda: len(_running(at)) == 2, 'the target')


def _running(at):
    is_ready = lambda pod: any(one['type'] == 'Ready' and one['status'] == 'True' for one in pod['status'].get('conditions', []))
    return [pod['metadata']['name'] for pod in at.get('pods', '--selector=app=shop') if is_ready(pod) and 'deletionTimestamp' not in pod['metadata']]


def _server(at):
    return next((name for name in _running(at) if name != 'batch'), None)


def pods_of_a_target():
    with place('shop') as at:
        _shop(at)
        target = at.target()
        run = at.start(f'''
target: {target.url}
monitors: [{{ kubernetes: {{ pods: app=shop, namespace: shop }} }}]
loads: [{{ http: /, rate: 5/s, duration: {SECONDS}s }}]
''')
        wait_for(lambda: target.seen() > 10, 'the load', run)
        began = time.monotonic()
        said = lambda part: wait_for(lambda: part in ' '.join(run.stderr().split()), part, run)
        first = _server(at)
        at.kubectl('exec', first, '--', 'touch', '/tmp/end')
        said(f'{first}: container web was restarted (Error, exit code 3)')
        at.kubectl('exec', 'batch', '--', 'touch', '/tmp/eat')
        said('batch: container web ended (OOMKilled, exit code 137)')
        at.kubectl('set', 'env', 'deployment/shop', 'BUILD=2')
        said('rollout: shop-')
        rig.wait(lambda: _server(at) not in (None, first), 'the new pod')
        second = _server(at)
        at.kubectl('exec', second, '--', 'touch', '/tmp/eat')
        said(f'{second}: container web was restarted (OOMKilled, exit code 137)')
        eviction = {'apiVersion': 'policy/v1', 'kind': 'Eviction', 'metadata': {'name': second, 'namespace': 'shop'}}
        at.kubectl('create', '--raw', f'/api/v1/namespaces/shop/pods/{second}/eviction', '--filename=-', input=json.dumps(eviction))
        said(f'{second}: EvictionByEvictionAPI: Eviction API: evicting')
        at.kubectl('rollout', 'undo', 'deployment/shop')
        wait_for(lambda: ' '.join(run.stderr().split()).count('rollout: shop-') == 2, 'the way back', run)
        seconds = time.monotonic() - began
        run.end().ends_with(0)
        restarts = [event for event in run.record['events'] if event['kind'] == 'restart']
        assert len(restarts) == 4 and all(0 < event['at_s'] < SECONDS for event in restarts), restarts
        names = {monitor['name'] for monitor in run.record['monitors'] if monitor['samples']}
        assert {f'{first} cpu', f'{first} memory'} <= names, names
        at.kubectl('delete', 'deployment/shop', 'pod/batch', '--grace-period=1', '--wait=false')
        return f'restart, OOM kills, rollout, eviction and the way back within {seconds:.0f} s'


def role_of_a_monitor_suffices():
    """With `list` for pods alone there are events."""
    with place('watched') as at:
        _shop(at)
        target = at.target()
        plan = f'''
target: {target.url}
monitors: [{{ kubernetes: {{ pods: app=shop, namespace: watched }} }}]
loads: [{{ http: /, rate: 5/s, duration: 25s }}]
'''
        config = at.account(plan)
        run = at.start(plan, KUBECONFIG=str(config))
        wait_for(lambda: target.seen() > 10, 'the load', run)
        first = _server(at)
        at.kubectl('exec', first, '--', 'touch', '/tmp/end')
        run.end().ends_with(0).says('events only, no CPU and memory')
        labels = [event['label'] for event in run.record['events']]
        assert f'{first}: container web was restarted (Error, exit code 3)' in labels, labels
        at.kubectl('delete', 'deployment/shop', 'pod/batch', '--grace-period=1', '--wait=false')


def generator_with_a_low_limit():
    with place('slow') as at:
        target = at.target()
        run = at.run(f'''
target: {target.url}
machines: {{ pods: {{ kubernetes: {{ replicas: 1, namespace: slow, resources: {{ cpu: 100m, memory: 256Mi }} }} }} }}
lost_after: 60s
loads: [{{ http: /, duration: 8s, connections: 20 }}]
''')
        assert 'cpu_throttled' in run.reasons(), run.reasons()
        assert run.ok() <= target.stop() <= run.ok() + run.interrupted()
