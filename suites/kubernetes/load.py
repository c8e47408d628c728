"""Cases of whole runs: every request is counted once, with exactly the permissions that are named."""
import json
import time

import rig
from place import histogram, place, refuses, wait_for

FORTY = '''
target: {plain}
kubernetes: {{ namespace: forty, resources: {{ requests: {{ cpu: 20m, memory: 64Mi }}, limits: {{ cpu: 1, memory: 512Mi }} }}, ready_within: 5m }}
machines:
  pods: {{ kubernetes: {{ replicas: 36, image: 'squall.test/squall:1', binary: image }} }}
  sent: {{ kubernetes: {{ replicas: 4 }} }}
steps:
  - name: first
    loads:
      - {{ http: /, requests: 2000, connections: 80, name: plain }}
      - {{ http: /bytes/10, requests: 17, connections: 1, name: one, on: pods-7 }}
  - name: second
    loads:
      - {{ script: {script}, vus: 40, iterations: 400, name: script }}
      - {{ handshake: '{tls}', rate: 40/s, duration: 5s, name: handshakes, insecure: true }}
'''

SCRIPT = '''
import http from 'k6/http';
import { check } from 'k6';
export default function () {
  const answer = http.get(`${__ENV.TARGET}/get`);
  check(answer, { 'status is 200': (one) => one.status === 200 });
}
'''


def forty_pods():
    with place('forty') as at:
        plain, tls = at.target(), at.target('--tls')
        script = at.folder / 'script.js'
        script.write_text(SCRIPT)
        run = at.run(FORTY.format(plain=plain.url, tls=tls.url.removeprefix('https://'), script=script)).ends_with(0)
        assert run.counts('load') == {'plain': 2000, 'one': 17, 'script': 400, 'handshakes': 200}, run.counts('load')
        machines = run.parts('machine')
        assert list(machines) == [f'pods-{number}' for number in range(36)] + [f'sent-{number}' for number in range(4)]
        # Each has its part: of 2,000 requests, 400 iterations and 200 handshakes a fortieth, and one has 17 more.
        expected = {name: 50 + 10 + 5 + (17 if name == 'pods-7' else 0) for name in machines}
        assert run.counts('machine') == expected, run.counts('machine')
        union = sum((histogram(part['total']) for part in machines.values()), start=histogram({'rows': []}))
        assert union == histogram(run.record['total']) and union.total() == 2617, union.total()
        assert plain.stop() == 2417, plain.seen()
        assert tls.connections() == 200, tls.said
        nodes = {part['facts']['node'] for part in machines.values()}
        assert nodes == set(rig.NODES) and all(part['facts']['cpu_limit'] == '1' for part in machines.values())
        return f'2,617 requests counted exactly, all percentiles those of the union, start skew {run.skew_ms():.2f} ms'


def image_without_a_shell():
    with place('image') as at:
        target = at.target()
        run = at.run(f'''
target: {target.url}
machines: {{ pods: {{ kubernetes: {{ replicas: 3, namespace: image, image: 'squall.test/squall:1', binary: image }} }} }}
loads: [{{ http: /, requests: 300, connections: 6 }}]
''').ends_with(0)
        assert run.counts('machine') == {'pods-0': 100, 'pods-1': 100, 'pods-2': 100}
        assert target.stop() == 300


def script_without_a_plan():
    with place('script') as at:
        target = at.target()
        script = at.folder / 'script.js'
        script.write_text(SCRIPT)
        flags = [script, '--kubernetes', 'replicas=2,namespace=script', '--vus', '4', '--iterations', '20', '-e', f'TARGET={target.url}']
        run = at.start('', *flags).end().ends_with(0)
        assert run.counts('machine') == {'pods-0': 10, 'pods-1': 10}
        assert target.stop() == 20


PLAN = '''
target: {target}
machines: {{ pods: {{ kubernetes: {{ replicas: 2, namespace: {namespace} }} }} }}
loads: [{{ http: /, requests: 100, connections: 4 }}]
'''


def role_that_is_printed_suffices():
    with place('role') as at:
        target = at.target()
        plan = PLAN.format(target=target.url, namespace='role')
        config = at.account(plan)
        run = at.start(plan.replace('requests: 100', 'rate: 20/s, duration: 10s'), '--allow-lost', '1', KUBECONFIG=str(config))
        # What is asked about a pod that is lost needs permissions, too.
        wait_for(target.seen, 'the load', run)
        at.kubectl('delete', 'pod', at.get('pods')[0]['metadata']['name'], '--wait=false')
        run.end().ends_with(0)
        # Nor is why pods are missing asked for where none is.
        at.kubectl('create', 'quota', 'none', '--hard=pods=0')
        refuses(at.run(plan.replace('replicas: 2', 'replicas: 2, ready_within: 3s'), KUBECONFIG=str(config)), 'exceeded quota: none')
        at.kubectl('delete', 'quota', 'none')
        role = json.loads(at.kubectl('get', 'role', 'squall', '--output=json').stdout)
        granted = {(verb, resource) for rule in role['rules'] for resource in rule['resources'] for verb in rule['verbs']}
        used = {access for access in at.audited('squall') if access[1] != 'selfsubjectaccessreviews'}
        assert used <= granted, used - granted
        # That one is checked with `get`, which is what an exec over WebSocket is.
        assert granted - used <= {('create', 'pods/exec')}, granted - used
        for verb, resource in granted:
            _says_what_is_denied(at, plan, config, role, verb, resource)
        return f'{len(granted)} permissions, all of them used'


def _says_what_is_denied(at, plan, config, role, verb, resource):
    """Takes one permission from the Role."""
    kind, _, subresource = resource.partition('/')
    rules = [{**rule, 'verbs': [one for one in rule['verbs'] if (one, rule['resources'][0]) != (verb, resource)]} for rule in role['rules']]
    at.kubectl('replace', '--filename=-', input=json.dumps({**role, 'metadata': {'name': 'squall'}, 'rules': [rule for rule in rules if rule['verbs']]}))
    rig.wait(lambda: rig.kubectl('--namespace=role', 'auth', 'can-i', verb, kind, f'--subresource={subresource}', config=config, check=False).stdout.strip() == 'no', f'{verb} {resource} denied')
    refuses(at.run(plan, KUBECONFIG=str(config)), f'in namespace `role` this user may not `{verb} {resource}`')


def two_controllers_at_once():
    with place('two') as at:
        target = at.target()
        plan = PLAN.format(target=target.url, namespace='two')
        runs = [at.start(plan), at.start(plan)]
        for run in runs:
            assert run.end().ends_with(0).ok() == 100
        assert target.stop() == 200


def pods_that_are_early_wait_for_the_others():
    """Longer than a stream may be idle."""
    with place('early') as at:
        target = at.target()
        run = at.start(f'''
target: {target.url}
kubernetes: {{ namespace: early }}
machines: {{ early: {{ kubernetes: {{ replicas: 2 }} }}, late: {{ kubernetes: {{ replicas: 1, node_selector: {{ squall-test: late }} }} }} }}
loads: [{{ http: /, requests: 90, connections: 3 }}]
''')
        wait_for(lambda: "didn't match Pod's node affinity/selector" in run.stderr() and len([pod for pod in at.get('pods') if pod['status']['phase'] == 'Running']) == 2, 'two of three pods', run)
        time.sleep(rig.STREAM_IDLE_SECONDS + 8)
        rig.kubectl('label', 'node', 'node-a', 'squall-test=late')
        run.end().ends_with(0)
        rig.kubectl('label', 'node', 'node-a', 'squall-test-')
        assert run.counts('machine') == {'early-0': 30, 'early-1': 30, 'late-0': 30} and 'lost' not in run.said, run.said
        assert target.stop() == 90
