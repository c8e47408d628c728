"""Builds the programs of the rig from their modules, once: they are kept in the cache folder."""
import json
import os
import re
import subprocess
from pathlib import Path

from rig import BIN, CACHE, ROOT

KUBERNETES, STAGING, ETCD, CONTAINERD = 'v1.37.2', 'v0.37.2', 'v3.7.3', 'v2.4.2'
KUBERNETES_PROGRAMS = ['kubectl', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubelet']
CONTAINERD_PROGRAMS = ['containerd', 'containerd-shim-runc-v2', 'ctr']


def missing():
    """Builds what is not there yet, some 15 minutes on two processors."""
    BIN.mkdir(parents=True, exist_ok=True)
    absent = lambda programs: [program for program in programs if not (BIN / program).exists()]
    if programs := absent(KUBERNETES_PROGRAMS):
        build(kubernetes_module(), {program: f'k8s.io/kubernetes/cmd/{program}' for program in programs})
    if programs := absent(CONTAINERD_PROGRAMS):
        # What these leave out needs C libraries.
        build(module('containerd', f'github.com/containerd/containerd/v2@{CONTAINERD}'), {program: f'github.com/containerd/containerd/v2/cmd/{program}' for program in programs}, '-tags=no_btrfs,no_devmapper,no_zfs')
    if absent(['etcd']):
        build(module('etcd', f'go.etcd.io/etcd/server/v3@{ETCD}'), {'etcd': 'go.etcd.io/etcd/server/v3'})


def kubernetes_module():
    """Kubernetes' own module replaces its staging modules by folders that only its repository has: this one replaces them by their releases."""
    folder = CACHE / 'kubernetes'
    folder.mkdir(exist_ok=True)
    found = json.loads(go(CACHE, 'mod', 'download', '-json', f'k8s.io/kubernetes@{KUBERNETES}'))
    staging = re.findall(r'(k8s\.io/\S+) => \./staging', Path(found['GoMod']).read_text())
    replacements = ''.join(f'replace {name} => {name} {STAGING}\n' for name in staging)
    (folder / 'go.mod').write_text(f'module squall.test/kubernetes\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes {KUBERNETES}\n\n{replacements}')
    imports = ''.join(f'\t_ "k8s.io/kubernetes/cmd/{program}"\n' for program in KUBERNETES_PROGRAMS)
    (folder / 'tools.go').write_text(f'//go:build tools\n\npackage tools\n\nimport (\n{imports})\n')
    go(folder, 'mod', 'tidy')
    return folder


def module(name, required):
    folder = CACHE / name
    folder.mkdir(exist_ok=True)
    (folder / 'go.mod').write_text(f'module squall.test/{name}\n\ngo 1.26.0\n')
    go(folder, 'get', required)
    return folder


def build(folder, programs, *flags):
    for program, package in programs.items():
        print(f'building {program}', flush=True)
        go(folder, 'build', '-trimpath', '-ldflags=-s -w', *flags, '-o', str(BIN / program), package)


def go(folder, *words):
    return subprocess.run(['go', *words], cwd=folder, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, 'GOFLAGS': '-mod=mod', 'CGO_ENABLED': '0'}).stdout


def squall():
    """The squall under test without debug information, which every pod would be sent."""
    stripped = CACHE / 'squall'
    subprocess.run(['strip', '-o', stripped, os.environ.get('SQUALL') or ROOT / 'target/debug/squall'], check=True)
    return stripped
