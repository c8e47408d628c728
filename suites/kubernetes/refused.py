"""Cases of clusters that cannot run the pods: each has a message with the cause, nothing is sent, and no Job is left."""
import json
import shutil

import rig
from place import place, refuses


def _plan(at, pool='', target='http://10.249.0.1:9/'):
    return f'''
target: {target}
machines: {{ pods: {{ kubernetes: {{ replicas: 3, namespace: {at.namespace}, {pool} }} }} }}
loads: [{{ http: /, requests: 100, connections: 4 }}]
'''


def quota_exceeded():
    with place('quota') as at:
        at.kubectl('create', 'quota', 'small', '--hard=pods=2')
        refuses(at.run(_plan(at, 'ready_within: 5s')), 'exceeded quota: small', 'pods-2', 'lower `replicas` or `resources`, or raise the namespace\'s quota')


def quota_that_wants_limits():
    """A quota for CPUs makes them mandatory."""
    with place('limits') as at:
        at.kubectl('create', 'quota', 'small', '--hard=requests.cpu=2,limits.cpu=2')
        refuses(at.run(_plan(at)), 'must specify limits.cpu for: squall', 'its pod cannot be created')


def unschedulable():
    with place('unschedulable') as at:
        refuses(at.run(_plan(at, 'ready_within: 5s, resources: { requests: { cpu: 1000 } }')), '0/2 nodes are available: 2 Insufficient cpu', 'lower `replicas`')
        refuses(at.run(_plan(at, 'ready_within: 5s, node_selector: { zone: moon }')), "2 node(s) didn't match Pod's node affinity/selector")
        # Three pods, one on each of two nodes.
        refuses(at.run(_plan(at, 'ready_within: 10s, spread: node')), "2 node(s) didn't match pod anti-affinity rules", 'spread: even')


def image_is_missing():
    with place('image') as at:
        refuses(at.run(_plan(at, 'image: "10.249.0.1:9/none:1"')), 'ErrImagePull', 'connection refused', 'correct `image`')
        refuses(at.run(_plan(at, 'image: UPPER')), 'InvalidImageName', 'correct `image`')


def image_without_what_is_needed():
    with place('shell') as at:
        refuses(at.run(_plan(at, 'image: "squall.test/squall:1"')), '/bin/sh', 'use an image with /bin/sh')
        refuses(at.run(_plan(at, 'binary: image')), 'squall', 'use an image with')


def pods_that_the_namespace_forbids():
    """Neither the Job nor its pods are ours to change: annotations and labels cannot break the standard, a service account can be missing."""
    with place('forbidden') as at:
        refuses(at.run(_plan(at, 'service_account: nobody')), 'serviceaccount "nobody" not found')


def namespace_is_missing():
    with place('unused') as at:
        at.namespace = 'nowhere'
        refuses(at.run(_plan(at)), '`kubectl`', 'namespaces "nowhere" not found', 'kubectl create namespace')
        at.namespace = 'unused'


def user_may_nothing():
    with place('denied') as at:
        at.kubectl('create', 'serviceaccount', 'stranger')
        config = rig.kubeconfig(at.folder / 'config', at.kubectl('create', 'token', 'stranger').stdout.strip())
        refuses(at.run(_plan(at), KUBECONFIG=str(config)), 'this user may not `create jobs`, `delete jobs`', 'squall plan manifests')


def token_is_refused():
    with place('token') as at:
        config = rig.kubeconfig(at.folder / 'config', 'x' * 32)
        refuses(at.run(_plan(at), KUBECONFIG=str(config)), 'the login has expired', 'log in to the cluster again')


def kubectl_is_missing():
    with place('kubectl') as at:
        refuses(at.run(_plan(at, 'kubectl: /no/such/kubectl')), 'cannot start `/no/such/kubectl`', 'install kubectl')
        refuses(at.run(_plan(at), PATH='/usr/bin:/bin'), 'cannot start `kubectl`', 'install kubectl') if not shutil.which('kubectl', path='/usr/bin:/bin') else None


def kubeconfig_is_missing_or_wrong():
    with place('config') as at:
        plan = _plan(at)
        refuses(at.run(plan, KUBECONFIG=str(at.folder / 'none')), 'there is no kubeconfig', 'set KUBECONFIG')
        # Without a namespace in the plan, the context is looked at first.
        without = plan.replace('namespace: config, ', '')
        refuses(at.run(without, KUBECONFIG=str(at.folder / 'none')), 'there is no kubeconfig', 'set KUBECONFIG')
        refuses(at.run(_plan(at, 'context: moon')), 'the kubeconfig has no such entry', 'moon', 'kubectl config get-contexts')
        refuses(at.run(_plan(at, f'kubeconfig: {at.folder}/none')), 'the kubeconfig cannot be read', 'correct `kubeconfig`')
        (at.folder / 'broken').write_text('{ not: a kubeconfig')
        refuses(at.run(plan, KUBECONFIG=str(at.folder / 'broken')), 'yaml')


def api_server_does_not_answer():
    with place('down') as at:
        other = json.loads(rig.KUBECONFIG.read_text())
        for server, words in [(f'https://{rig.HOST}:9', 'the API server does not answer'), (f'https://{rig.HOST}:{rig.ETCD_PORT}', 'the API server does not answer'), ('https://no-such-host.invalid', "the API server's name is not known")]:
            other['clusters'][0]['cluster']['server'] = server
            (at.folder / 'other').write_text(json.dumps(other))
            refuses(at.run(_plan(at), KUBECONFIG=str(at.folder / 'other')), words, 'check that `kubectl get pods` works')


def tls_is_not_trusted():
    with place('tls') as at:
        other = json.loads(rig.KUBECONFIG.read_text())
        del other['clusters'][0]['cluster']['certificate-authority']
        (at.folder / 'other').write_text(json.dumps(other))
        refuses(at.run(_plan(at), KUBECONFIG=str(at.folder / 'other')), "the API server's certificate is not trusted")
