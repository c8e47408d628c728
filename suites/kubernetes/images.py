"""The images of the rig, made from this machine's own files, because there is no registry to pull from.

`busybox:stable` stands for the default image; unlike the real one it has this machine's C library, so that a squall that is not
linked statically runs in it. `squall.test/squall:1` has squall and no shell, `squall.test/controller:1` also the shell and kubectl.
`squall.test/pause:1` is what holds a pod's namespaces."""
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

BUSYBOX = shutil.which('busybox') or '/bin/busybox'
PATH = 'PATH=/usr/local/bin:/usr/bin:/bin'


def write(folder, squall, kubectl):
    """Writes an archive for each image."""
    folder.mkdir()
    applets = subprocess.run([BUSYBOX, '--list'], capture_output=True, text=True, check=True).stdout.split()
    shell = {'bin/busybox': Path(BUSYBOX), **{f'bin/{name}': 'busybox' for name in applets if name != 'busybox'}}
    archive(folder / 'pause.tar', 'squall.test/pause:1', {'bin/busybox': Path(BUSYBOX)}, ['/bin/busybox', 'sleep', 'infinity'])
    archive(folder / 'busybox.tar', 'docker.io/library/busybox:stable', {**shell, **libraries(squall)}, ['sh'])
    program = {'usr/local/bin/squall': Path(squall), **libraries(squall)}
    archive(folder / 'squall.tar', 'squall.test/squall:1', program, ['squall'])
    archive(folder / 'controller.tar', 'squall.test/controller:1', {**shell, **program, 'usr/local/bin/kubectl': Path(kubectl)}, ['squall'])


def libraries(program):
    """The libraries that a program is linked with, where it looks for them."""
    said = subprocess.run(['ldd', program], capture_output=True, text=True).stdout
    return {path.lstrip('/'): Path(path) for path in re.findall(r'(/\S+) \(0x', said)}


def archive(path, name, files, command):
    """An image of one layer; a text as a file is a symbolic link."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode='w') as tar:
        for folder in sorted({str(parent) for inside in files for parent in Path(inside).parents} | {'tmp'} - {'.'}):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == 'tmp' else 0o755
            tar.addfile(entry)
        for inside, source in files.items():
            add(tar, inside, source)
    layer = layer.getvalue()
    config = {'architecture': {'x86_64': 'amd64', 'aarch64': 'arm64'}[os.uname().machine], 'os': 'linux', 'config': {'Cmd': command, 'Env': [PATH]}, 'rootfs': {'type': 'layers', 'diff_ids': [f'sha256:{hashlib.sha256(layer).hexdigest()}']}}
    manifest = [{'Config': 'config.json', 'RepoTags': [name], 'Layers': ['layer.tar']}]
    with tarfile.open(path, 'w') as tar:
        for inside, content in [('layer.tar', layer), ('config.json', json.dumps(config).encode()), ('manifest.json', json.dumps(manifest).encode())]:
            entry = tarfile.TarInfo(inside)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))


def add(tar, inside, source):
    entry = tarfile.TarInfo(inside)
    entry.mode = 0o755
    if isinstance(source, str):
        entry.type, entry.linkname = tarfile.SYMTYPE, source
        tar.addfile(entry)
        return
    content = source.read_bytes()
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))
