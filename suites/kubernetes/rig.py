"""A Kubernetes cluster on this machine: real control plane, kubelets and containers, without a registry.

Owns: every process, network namespace and control group that it makes; `down` ends exactly those. Needs root, runc and the CNI plugins.
etcd, kube-apiserver, kube-controller-manager and kube-scheduler listen on a bridge that only this machine has. Each node is a network, process
and mount namespace with its own containerd and kubelet, so ending its first process ends everything that runs on it."""
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import images

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CACHE = Path(os.environ.get('CACHE') or Path.home() / '.cache/squall-kubernetes')
BIN = CACHE / 'bin'
WORK = Path(os.environ.get('WORK') or '/tmp/squall-kubernetes')
KUBECONFIG = WORK / 'kubeconfig'
# Of this machine alone: 10.249.0.1 is the API server and the tests' targets, 10.249.0.1N a node, 10.249.1N.0/24 its pods.
BRIDGE, HOST = 'squall-k8s', '10.249.0.1'
NODES = {'node-a': 11, 'node-b': 12}
API_PORT, ETCD_PORT, PEER_PORT = 16443, 12379, 12380
CNI_BIN = '/usr/lib/cni'
# Some clusters cut an exec on which nothing is said; the usual limit is four hours.
STREAM_IDLE_SECONDS = 20
READY_SECONDS_MAX = 120


def up(squall):
    """Starts the cluster; gives its kubeconfig. `squall`: the program that one of the images has."""
    if KUBECONFIG.exists():
        raise SystemExit(f'a cluster is already in {WORK}: end it with suites/kubernetes/down')
    # Keys and tokens are in there.
    WORK.mkdir(mode=0o700, parents=True)
    tokens = {user: secrets.token_hex(16) for user in ['admin', 'system:kube-controller-manager', 'system:kube-scheduler', *(f'system:node:{node}' for node in NODES)]}
    groups = {'admin': 'system:masters', **{f'system:node:{node}': 'system:nodes' for node in NODES}}
    (WORK / 'tokens.csv').write_text(''.join(f'{token},{user},{user},"{groups.get(user, "")}"\n' for user, token in tokens.items()))
    (WORK / 'resolv.conf').write_text('')
    (WORK / 'audit.json').write_text(json.dumps({'apiVersion': 'audit.k8s.io/v1', 'kind': 'Policy', 'rules': [{'level': 'Metadata', 'omitStages': ['RequestReceived'], 'userGroups': ['system:serviceaccounts']}]}))
    certificates()
    for user, token in tokens.items():
        kubeconfig(config_path(user), token)
    bridge()
    images.write(WORK / 'images', squall, BIN / 'kubectl')
    control_plane()
    for node in NODES:
        start_node(node)
    wait(all_nodes_ready, 'nodes')
    shutil.copy(config_path('admin'), KUBECONFIG)
    return KUBECONFIG


def down():
    """Ends what `up` started, and removes what it made."""
    for name in started():
        stop(name)
    for node in NODES:
        run('ip', 'netns', 'delete', node_space(node), check=False)
        remove_cgroups(node)
    run('ip', 'link', 'delete', BRIDGE, check=False)
    shutil.rmtree(WORK, ignore_errors=True)


def certificates():
    folder = WORK / 'keys'
    folder.mkdir()
    openssl = lambda *words: subprocess.run(['openssl', *words], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=squall test', '-keyout', 'ca.key', '-out', 'ca.crt')
    openssl('genrsa', '-out', 'accounts.key', '2048')
    of = {'server': ('/CN=kube-apiserver', f'subjectAltName=IP:{HOST},IP:10.96.0.1,DNS:kubernetes.default.svc'), 'kubelet-client': ('/O=system:masters/CN=kube-apiserver', 'extendedKeyUsage=clientAuth')}
    for name, (subject, extension) in of.items():
        (folder / 'extension').write_text(extension)
        openssl('req', '-newkey', 'rsa:2048', '-nodes', '-subj', subject, '-keyout', f'{name}.key', '-out', f'{name}.csr')
        openssl('x509', '-req', '-in', f'{name}.csr', '-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'extension', '-out', f'{name}.crt')


def config_path(user):
    return WORK / f'{user.replace(":", "-")}.kubeconfig'


def kubeconfig(path, token, namespace='default'):
    """A kubeconfig for the user whom this token names."""
    config = {
        'apiVersion': 'v1', 'kind': 'Config', 'current-context': 'test',
        'clusters': [{'name': 'test', 'cluster': {'server': f'https://{HOST}:{API_PORT}', 'certificate-authority': str(WORK / 'keys/ca.crt')}}],
        'users': [{'name': 'test', 'user': {'token': token}}],
        'contexts': [{'name': 'test', 'context': {'cluster': 'test', 'user': 'test', 'namespace': namespace}}],
    }
    path.write_text(json.dumps(config))
    return path


def bridge():
    run('ip', 'link', 'add', BRIDGE, 'type', 'bridge')
    run('ip', 'address', 'add', f'{HOST}/24', 'dev', BRIDGE)
    run('ip', 'link', 'set', BRIDGE, 'up')


def control_plane():
    start('etcd', [
        BIN / 'etcd', f'--data-dir={WORK}/etcd', f'--listen-client-urls=http://127.0.0.1:{ETCD_PORT}', f'--advertise-client-urls=http://127.0.0.1:{ETCD_PORT}',
        f'--listen-peer-urls=http://127.0.0.1:{PEER_PORT}', f'--initial-advertise-peer-urls=http://127.0.0.1:{PEER_PORT}',
        f'--initial-cluster=default=http://127.0.0.1:{PEER_PORT}', '--unsafe-no-fsync',
    ])
    start_api()
    wait(lambda: kubectl('get', '--raw', '/readyz', config=config_path('admin'), check=False).returncode == 0, 'the API server')
    start('kube-controller-manager', [
        BIN / 'kube-controller-manager', f'--kubeconfig={config_path("system:kube-controller-manager")}', f'--service-account-private-key-file={WORK}/keys/accounts.key',
        f'--root-ca-file={WORK}/keys/ca.crt', '--use-service-account-credentials=true', '--leader-elect=false', '--secure-port=0', '--node-monitor-period=2s', '--node-monitor-grace-period=10s',
    ])
    start('kube-scheduler', [BIN / 'kube-scheduler', f'--kubeconfig={config_path("system:kube-scheduler")}', '--leader-elect=false', '--secure-port=0'])


def start_api():
    keys = WORK / 'keys'
    start('kube-apiserver', [
        BIN / 'kube-apiserver', f'--etcd-servers=http://127.0.0.1:{ETCD_PORT}', f'--bind-address={HOST}', f'--secure-port={API_PORT}', f'--token-auth-file={WORK}/tokens.csv',
        f'--tls-cert-file={keys}/server.crt', f'--tls-private-key-file={keys}/server.key', f'--client-ca-file={keys}/ca.crt', '--service-account-issuer=https://kubernetes.default.svc',
        f'--service-account-key-file={keys}/accounts.key', f'--service-account-signing-key-file={keys}/accounts.key', '--authorization-mode=Node,RBAC',
        f'--audit-policy-file={WORK}/audit.json', f'--audit-log-path={WORK}/audit.log', '--enable-admission-plugins=NodeRestriction', '--service-cluster-ip-range=10.96.0.0/16', f'--kubelet-client-certificate={keys}/kubelet-client.crt',
        f'--kubelet-client-key={keys}/kubelet-client.key', '--kubelet-preferred-address-types=InternalIP', '--default-not-ready-toleration-seconds=5', '--default-unreachable-toleration-seconds=5',
    ])


def node_space(node):
    return f'squall-{node}'


def start_node(node):
    """A network namespace on the bridge, and in it containerd and a kubelet."""
    number, folder, space = NODES[node], WORK / node, node_space(node)
    # A node that comes back is a new one.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    if not Path('/run/netns', space).exists():
        run('ip', 'netns', 'add', space)
        run('ip', 'link', 'add', node_link(node), 'type', 'veth', 'peer', 'name', 'eth0', 'netns', space)
        run('ip', 'link', 'set', node_link(node), 'master', BRIDGE, 'up')
        for words in [('link', 'set', 'lo', 'up'), ('link', 'set', 'eth0', 'up'), ('address', 'add', f'10.249.0.{number}/24', 'dev', 'eth0'), ('route', 'add', 'default', 'via', HOST)]:
            run('ip', '-n', space, *words)
    connect_node(node)
    make_cgroups(node)
    (folder / 'containerd.toml').write_text(CONTAINERD.format(folder=folder, cni=CNI_BIN, idle=f'{STREAM_IDLE_SECONDS}s'))
    (folder / 'kubelet.yaml').write_text(json.dumps(kubelet_config(node)))
    cni = {'cniVersion': '1.0.0', 'name': 'pods', 'plugins': [{'type': 'ptp', 'ipam': {'type': 'host-local', 'subnet': f'10.249.{number}.0/24', 'dataDir': f'{folder}/ipam', 'routes': [{'dst': '0.0.0.0/0'}]}}]}
    (folder / 'cni').mkdir(exist_ok=True)
    (folder / 'cni/pods.conflist').write_text(json.dumps(cni))
    config = config_path(f'system:node:{node}')
    start(node, [
        'nsenter', f'--net=/run/netns/{space}', 'unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', '--propagation', 'private',
        '/bin/bash', HERE / 'node', node, folder, WORK / 'images', config, f'10.249.0.{number}',
    ], PATH=f'{BIN}:{os.environ["PATH"]}')


def connect_node(node, is_up=True):
    """Plugs its cable in, or pulls it."""
    run('ip', 'link', 'set', node_link(node), 'up' if is_up else 'down')
    if is_up:
        run('ip', 'route', 'replace', f'10.249.{NODES[node]}.0/24', 'via', f'10.249.0.{NODES[node]}')


def node_link(node):
    return f'sq-{node}'


def kubelet_config(node):
    return {
        'apiVersion': 'kubelet.config.k8s.io/v1beta1', 'kind': 'KubeletConfiguration', 'failCgroupV1': False, 'failSwapOn': False, 'cgroupDriver': 'cgroupfs', 'cgroupRoot': f'/{node_space(node)}',
        'enforceNodeAllocatable': ['pods'], 'containerRuntimeEndpoint': f'unix://{WORK}/{node}/containerd.sock', 'authentication': {'x509': {'clientCAFile': str(WORK / 'keys/ca.crt')}},
        'authorization': {'mode': 'Webhook'}, 'resolvConf': str(WORK / 'resolv.conf'), 'podLogsDir': f'{WORK}/{node}/logs', 'localStorageCapacityIsolation': False,
        # The disk and the settings of this machine are not the node's own.
        'evictionHard': {'memory.available': '1Mi', 'nodefs.available': '0%', 'imagefs.available': '0%', 'nodefs.inodesFree': '0%', 'imagefs.inodesFree': '0%'}, 'imageGCHighThresholdPercent': 100, 'nodeStatusUpdateFrequency': '2s',
        'streamingConnectionIdleTimeout': f'{STREAM_IDLE_SECONDS}s', 'serializeImagePulls': False, 'registryPullQPS': 0, 'kubeAPIQPS': 200, 'kubeAPIBurst': 200,
    }


def all_nodes_ready():
    answer = kubectl('get', 'nodes', '--output=json', config=config_path('admin'), check=False)
    nodes = json.loads(answer.stdout or '{}').get('items', [])
    return {node['metadata']['name'] for node in nodes for condition in node['status'].get('conditions', []) if condition['type'] == 'Ready' and condition['status'] == 'True'} == set(NODES)


def kubectl(*words, config=KUBECONFIG, check=True, **options):
    return subprocess.run([BIN / 'kubectl', f'--kubeconfig={config}', *words], capture_output=True, text=True, check=check, **options)


def start(name, words, **environment):
    """Starts a process that lasts, and notes it for `stop`."""
    with open(WORK / f'{name}.log', 'ab') as log:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env={**os.environ, **environment})
    (WORK / f'{name}.pid').write_text(f'{process.pid} {start_time(process.pid)}')


def started():
    return sorted(path.stem for path in WORK.glob('*.pid'))


def stop(name, how=signal.SIGKILL):
    """Ends a process that `start` has started, unless another one has its number now."""
    path = WORK / f'{name}.pid'
    pid, begun = path.read_text().split()
    path.unlink()
    if start_time(pid) != begun:
        return
    os.kill(int(pid), how)
    wait(lambda: start_time(pid) != begun, f'the end of {name}')


def start_time(pid):
    """When a process began; nothing for one that has ended."""
    try:
        # It may have been started by another process, which has not waited for it.
        os.waitpid(int(pid), os.WNOHANG)
    except ChildProcessError:
        pass
    try:
        fields = Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return ''
    return '' if fields[0] == 'Z' else fields[19]


def cgroups(node):
    """The node's control group in each hierarchy."""
    mounts = [line.split() for line in Path('/proc/mounts').read_text().splitlines()]
    hierarchies = [Path(mount[1]) for mount in mounts if mount[2] in ('cgroup', 'cgroup2')]
    return [hierarchy / node_space(node) for hierarchy in hierarchies]


def make_cgroups(node):
    for group in cgroups(node):
        group.mkdir(exist_ok=True)
        # A machine of its own would not share its processors with other programs.
        for setting, value in [('cpu.shares', '65536'), ('cpu.weight', '2500')]:
            if (group / setting).exists():
                (group / setting).write_text(value)
        for setting in ['cpuset.cpus', 'cpuset.mems']:
            if (group / setting).exists() and not (group / 'cgroup.controllers').exists():
                (group / setting).write_text((group.parent / setting).read_text())


def remove_cgroups(node):
    for group in cgroups(node):
        for folder, _, _ in os.walk(group, topdown=False):
            try:
                os.rmdir(folder)
            except OSError as error:
                print(f'{folder} is still there: {error}')


def run(*words, check=True):
    subprocess.run(words, check=check, stdout=subprocess.DEVNULL, stderr=None if check else subprocess.DEVNULL)


def wait(is_so, what, seconds=READY_SECONDS_MAX):
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise SystemExit(f'{what}: not there after {seconds} s; the logs are in {WORK}')
        time.sleep(0.2)


CONTAINERD = '''version = 3
root = "{folder}/containerd"
state = "/run/containerd"
[grpc]
address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
stream_idle_timeout = "{idle}"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "squall.test/pause:1"
[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{cni}"]
conf_dir = "{folder}/cni"
'''
