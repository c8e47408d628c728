"""Cases of the controller in the cluster: the Job and the CronJob of deploy/kubernetes, with the service account of theirs.

There is no kube-proxy, so the pod gets the API server's own address instead of that of its service."""
import json
import shutil

import rig
from place import INVALID, place

PLAN = '''
target: {target}
machines: {{ pods: {{ kubernetes: {{ replicas: 2 }} }} }}
loads: [{{ http: /, requests: 60, connections: 2 }}]
thresholds: ['{threshold}']
'''
# The command that stores the results, which are in the container's log then.
AFTER_RUN = 'echo; echo RESULTS; cat /results/*/run.json'


def job_of_the_base():
    with place('inside') as at:
        for threshold, code in [('errors<50%', 0), ('p99<1us', 3)]:
            target = at.target()
            folder = _overlay(at, PLAN.format(target=target.url, threshold=threshold), 'kubernetes')
            at.kubectl('create', f'--kustomize={folder}')
            record = _ends(at, 'squall-controller', code)
            _is_complete(record, target)
            at.kubectl('delete', f'--kustomize={folder}')
            at.is_left_clean()
    return 'exit codes 0 and 3 are those of the container, and the results are in its log'


def job_of_the_cron_job():
    with place('nightly') as at:
        target = at.target()
        folder = _overlay(at, PLAN.format(target=target.url, threshold='p99<1us'), 'kubernetes-cron')
        at.kubectl('create', f'--kustomize={folder}')
        # As at half past two.
        at.kubectl('create', 'job', 'night', '--from=cronjob/squall-controller')
        record = _ends(at, 'night', 3)
        _is_complete(record, target)
        at.kubectl('delete', 'job', 'night')
        at.kubectl('delete', f'--kustomize={folder}')


def controller_that_is_deleted():
    """As after Ctrl-C: the results so far are stored, and the pods of the load are deleted."""
    with place('evicted') as at:
        target = at.target()
        plan = PLAN.format(target=target.url, threshold='errors<50%').replace('requests: 60', 'rate: 20/s, duration: 10m')
        folder = _overlay(at, plan, 'kubernetes')
        at.kubectl('create', f'--kustomize={folder}')
        rig.wait(lambda: target.seen() > 20, 'the load', 300)
        pod = _pod(at, 'squall-controller')['metadata']['name']
        at.kubectl('delete', 'pod', pod, '--wait=false')
        rig.wait(lambda: len(at.get('pods')) == 0, 'the end of all pods')
        jobs = [job['metadata']['name'] for job in at.get('jobs')]
        assert jobs == ['squall-controller'], jobs
        at.kubectl('delete', f'--kustomize={folder}')


def _overlay(at, plan, base):
    """The folders as a user changes them: the plan and the image; and for this cluster the address of its API server."""
    folder = at.folder / 'deploy'
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(rig.ROOT / 'deploy', folder)
    (folder / 'kubernetes/plan.yaml').write_text(plan)
    own = folder / 'own'
    own.mkdir()
    kind, spec = {'kubernetes': ('Job', '/spec/template/spec'), 'kubernetes-cron': ('CronJob', '/spec/jobTemplate/spec/template/spec')}[base]
    container = f'{spec}/containers/0'
    patch = [
        {'op': 'replace', 'path': f'{container}/env/0/value', 'value': AFTER_RUN},
        *({'op': 'add', 'path': f'{container}/env/-', 'value': {'name': f'KUBERNETES_SERVICE_{name}', 'value': str(value)}} for name, value in [('HOST', rig.HOST), ('PORT', rig.API_PORT)]),
        # This machine has two processors for the whole cluster.
        {'op': 'remove', 'path': f'{container}/resources'},
    ]
    (own / 'kustomization.yaml').write_text(json.dumps({
        'apiVersion': 'kustomize.config.k8s.io/v1beta1', 'kind': 'Kustomization', 'namespace': at.namespace, 'resources': [f'../{base}'],
        'images': [{'name': 'registry.example/squall-controller', 'newName': 'squall.test/controller', 'newTag': '1'}],
        'patches': [{'target': {'kind': kind}, 'patch': json.dumps(patch)}],
    }))
    return own


def _pod(at, job):
    pods = at.get('pods', f'--selector=batch.kubernetes.io/job-name={job}')
    return pods[0] if pods else None


def _ends(at, job, code):
    """The exit code of the container is that of the run, and its Job is complete or failed accordingly. Gives the record."""
    ended = lambda: (((_pod(at, job) or {}).get('status', {}).get('containerStatuses') or [{}])[0].get('state') or {}).get('terminated')
    try:
        rig.wait(ended, 'the end of the controller', 400)
    except SystemExit:
        print(at.kubectl('describe', 'pods').stdout[-3000:], at.kubectl('logs', f'job/{job}', check=False).stdout[-3000:])
        raise
    log = at.kubectl('logs', f'job/{job}').stdout
    said, _, results = log.partition('\nRESULTS\n')
    assert results, log[-3000:]
    record = json.loads(results)
    is_invalid = record['verdict']['status'] == 'INVALID'
    assert ended()['exitCode'] == (INVALID if is_invalid else code), f'{ended()}:\n{said[-3000:]}'
    condition = 'Complete' if ended()['exitCode'] == 0 else 'Failed'
    at.kubectl('wait', f'--for=condition={condition}', f'job/{job}', '--timeout=60s')
    return record


def _is_complete(record, target):
    """Every request is counted once, and the pods of the load are gone."""
    ok = sum(row['ok'] for row in record['total']['rows'])
    assert ok == target.stop() == 60, f'{ok} ok, {target.seen()} seen'
