"""Cases of what breaks during a run: what is lost is said and counted, what comes back costs nothing, and no Job is left."""
import os
import signal
import time

import rig
from place import place, wait_for

SECONDS, MACHINES = 12, 4


def _plan(at, target, pool='', more=''):
    return f'''
target: {target.url}
{more}
machines: {{ pods: {{ kubernetes: {{ replicas: {MACHINES}, namespace: {at.namespace}, {pool} }} }} }}
loads: [{{ http: /, rate: 40/s, duration: {SECONDS}s }}]
'''


def _started(at, plan, target, *flags, **environment):
    run = at.start(plan, *flags, **environment)
    wait_for(lambda: target.seen() > 80, 'the load', run)
    return run


def _is_complete(run, target):
    """As if nothing had happened."""
    run.end().ends_with(0)
    assert (run.ok(), run.interrupted(), target.stop()) == (40 * SECONDS, 0, 40 * SECONDS), f'{run.ok()} ok, {run.interrupted()} interrupted, {target.seen()} seen:\n{run.said[-2000:]}'
    return run


def _has_lost(run, target, *machines):
    """Every request of the schedule is accounted for."""
    run.end().ends_with(6).says(*(f'lost machine {machine}' for machine in machines))
    total = run.record['total']
    # With the last machine the run ends, and with it the schedule.
    if len(machines) < MACHINES:
        assert run.ok() + run.interrupted() + total.get('arrivals_lost', 0) == 40 * SECONDS, f'{run.ok()} ok, {run.interrupted()} interrupted, {total.get("arrivals_lost")} lost'
    assert run.ok() <= target.stop() <= run.ok() + run.interrupted(), f'{run.ok()} ok, {run.interrupted()} interrupted, {target.seen()} seen'
    assert 'machines_lost' in run.reasons()
    return run


def pod_is_deleted():
    with place('deleted') as at:
        target = at.target()
        run = _started(at, _plan(at, target), target)
        pod = next(pod for pod in at.get('pods') if '-2-' in pod['metadata']['name'])
        at.kubectl('delete', 'pod', pod['metadata']['name'], '--wait=false')
        _has_lost(run, target, 'pods-2').says('its pod was deleted')


def container_is_killed():
    """As for want of memory, but by a signal."""
    with place('killed') as at:
        target = at.target()
        run = _started(at, _plan(at, target), target)
        pod = next(pod['metadata']['name'] for pod in at.get('pods') if '-1-' in pod['metadata']['name'])
        at.kubectl('exec', pod, '--', '/bin/sh', '-c', 'kill -9 $(cat /squall/agent.pid)')
        _has_lost(run, target, 'pods-1')


def node_is_gone():
    with place('node') as at:
        target = at.target()
        run = _started(at, _plan(at, target), target)
        on_node = {pod['metadata']['annotations']['batch.kubernetes.io/job-completion-index'] for pod in at.get('pods') if pod['spec']['nodeName'] == 'node-b'}
        rig.connect_node('node-b', is_up=False)
        rig.stop('node-b')
        try:
            _has_lost(run, target, *(f'pods-{index}' for index in on_node))
        finally:
            rig.start_node('node-b')
        rig.wait(rig.all_nodes_ready, 'the node')


def node_is_cut_off_for_a_while():
    with place('cable') as at:
        target = at.target()
        run = _started(at, _plan(at, target, more='lost_after: 60s'), target)
        rig.connect_node('node-b', is_up=False)
        time.sleep(3)
        rig.connect_node('node-b')
        # The target cannot be reached either, so requests may fail; none is lost.
        run.end().ends_with(0)
        total = run.record['total']
        assert total['requests_started'] == 40 * SECONDS and total.get('arrivals_lost', 0) == 0, f'{total["requests_started"]} started'


def api_server_is_restarted():
    with place('api') as at:
        target = at.target()
        run = _started(at, _plan(at, target, more='lost_after: 60s'), target)
        rig.stop('kube-apiserver')
        time.sleep(2)
        rig.start_api()
        rig.wait(lambda: rig.kubectl('get', '--raw', '/readyz', check=False).returncode == 0, 'the API server')
        _is_complete(run, target).says('connection to pods-0 lost, reconnecting', 'reconnected to pods-0')


def api_server_is_gone_until_after_the_run():
    """The Job cannot be deleted then, and goes as after the controller's own end."""
    with place('outage') as at:
        target = at.target()
        run = _started(at, _plan(at, target, more='lost_after: 5s'), target)
        rig.stop('kube-apiserver')
        try:
            _has_lost(run, target, *(f'pods-{index}' for index in range(MACHINES))).says('could not be deleted', 'the API server does not answer')
        finally:
            rig.start_api()
        rig.wait(lambda: rig.kubectl('get', '--raw', '/readyz', check=False).returncode == 0, 'the API server')
        rig.wait(lambda: not at.get('jobs'), 'the end of the Job', 120)


def streams_stay_open_during_a_pause():
    """Which is longer than the cluster allows a stream to be idle."""
    with place('idle') as at:
        target = at.target()
        loads = 'loads: [{ http: /, requests: 40, connections: 4 }]'
        steps = f'steps: [{{ {loads}, pause: {rig.STREAM_IDLE_SECONDS + 6}s }}, {{ {loads} }}]'
        run = at.run(_plan(at, target).rsplit('loads:', 1)[0] + steps).ends_with(0)
        assert run.ok() == target.stop() == 80 and 'lost' not in run.said, run.said


def exec_is_cut():
    with place('cut') as at:
        target = at.target()
        run = _started(at, _plan(at, target), target)
        for pid in run.children('exec'):
            os.kill(pid, signal.SIGKILL)
        _is_complete(run, target).says('connection to pods-3 lost, reconnecting', 'reconnected to pods-3')


def interrupted_by_the_user():
    with place('ctrl-c') as at:
        target = at.target()
        run = _started(at, _plan(at, target), target)
        os.kill(run.process.pid, signal.SIGINT)
        run.end()
        assert run.ok() <= target.stop() <= run.ok() + run.interrupted()


def interrupted_before_the_pods_are_ready():
    with place('early') as at:
        target = at.target()
        run = at.start(_plan(at, target, 'resources: { requests: { cpu: 1000 } }'))
        wait_for(lambda: 'Insufficient cpu' in run.stderr(), 'the reason', run)
        os.kill(run.process.pid, signal.SIGINT)
        run.end()
        assert run.code not in (0, None) and target.stop() == 0


def controller_is_killed():
    """The agents end by themselves, then their containers, then the Job, which the cluster deletes."""
    with place('orphans') as at:
        target = at.target()
        run = _started(at, _plan(at, target, more='lost_after: 3s'), target)
        run.kill()
        rig.wait(lambda: not any(pod['status']['phase'] == 'Running' for pod in at.get('pods')), 'the end of the containers', 60)
        rig.wait(lambda: not at.get('jobs'), 'the end of the Job', 120)


def controller_is_killed_before_its_agents_start():
    """The containers wait for an agent for three minutes more than the pods may take to become ready."""
    with place('unborn') as at:
        target = at.target()
        run = at.start(_plan(at, target, 'ready_within: 1s'))
        wait_for(lambda: at.get('jobs'), 'the Job', run)
        run.kill()
        rig.wait(lambda: at.get('pods') and all(pod['status']['phase'] == 'Succeeded' for pod in at.get('pods')), 'the end of the containers', 240)
        rig.wait(lambda: not at.get('jobs'), 'the end of the Job', 120)
        assert target.stop() == 0


def deadline_ends_the_job():
    """As where an agent hangs: the Job that squall prints, with a short deadline."""
    with place('deadline') as at:
        target = at.target()
        run = _started(at, _plan(at, target), target)
        job = at.get('jobs')[0]['metadata']['name']
        at.kubectl('patch', 'job', job, '--patch={"spec":{"activeDeadlineSeconds":1}}')
        _has_lost(run, target, *(f'pods-{index}' for index in range(MACHINES))).says('its pod was deleted')
