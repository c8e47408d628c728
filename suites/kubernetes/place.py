"""One test's namespace, target and runs."""
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import rig

# A generator that shares this machine with its target and the cluster is often too slow, which is not what is tested.
INVALID = 5


@contextmanager
def place(name, **labels):
    """A namespace whose pods must meet the Pod Security Standard `restricted`, and which is empty again at the end."""
    with tempfile.TemporaryDirectory(prefix='squall-') as folder:
        of = Place(name, Path(folder))
        of.kubectl('create', 'namespace', name)
        of.kubectl('label', 'namespace', name, 'pod-security.kubernetes.io/enforce=restricted')
        try:
            yield of
            of.is_left_clean()
        finally:
            of.end()
            of.kubectl('delete', 'namespace', name, '--wait=false')


class Place:
    def __init__(self, namespace, folder):
        self.namespace, self.folder, self.targets, self.runs = namespace, folder, [], 0

    def kubectl(self, *words, **options):
        return rig.kubectl(f'--namespace={self.namespace}', *words, **options)

    def get(self, *words):
        return json.loads(self.kubectl('get', *words, '--output=json').stdout)['items']

    def target(self, *flags):
        """Starts a target that logs."""
        target = Target(self.folder / f'log-{len(self.targets)}', flags)
        self.targets.append(target)
        return target

    def end(self):
        for target in self.targets:
            target.stop()

    def start(self, plan, *flags, command=('run',), **environment):
        """Starts a run of a plan, with pods of this namespace."""
        self.runs += 1
        return Run(self.folder / f'run-{self.runs}', plan, flags, command, environment)

    def run(self, plan, *flags, **environment):
        return self.start(plan, *flags, **environment).end()

    def account(self, plan):
        """A kubeconfig for a service account that has the Role which squall prints for the plan."""
        (self.folder / 'manifests.yaml').write_text(plan)
        printed = subprocess.run([os.environ['SQUALL'], 'plan', 'manifests', self.folder / 'manifests.yaml'], capture_output=True, text=True, check=True).stdout
        self.kubectl('create', '--dry-run=server', '--filename=-', input=printed)
        self.kubectl('create', 'serviceaccount', 'squall')
        self.kubectl('create', '--filename=-', input='---\n'.join(one for one in printed.split('---\n') if 'kind: Job' not in one))
        return rig.kubeconfig(self.folder / 'kubeconfig', self.kubectl('create', 'token', 'squall').stdout.strip(), self.namespace)

    def audited(self, account):
        """What a service account was allowed to do: verbs and resources. kubectl also asks for what it can do without, such as the namespace of a pod that is gone."""
        requests = [json.loads(line) for line in (rig.WORK / 'audit.log').read_text().splitlines()]
        own = [request for request in requests if request['user']['username'] == f'system:serviceaccount:{self.namespace}:{account}' and 'objectRef' in request and request['annotations']['authorization.k8s.io/decision'] == 'allow']
        return {(request['verb'], '/'.join(part for part in [request['objectRef']['resource'], request['objectRef'].get('subresource')] if part)) for request in own}

    def is_left_clean(self):
        jobs = self.get('jobs')
        assert not jobs, f'Jobs are left: {[job["metadata"]["name"] for job in jobs]}'
        rig.wait(lambda: not self.get('pods'), 'the end of all pods')


class Target:
    def __init__(self, log, flags):
        self.log = log
        self.process = subprocess.Popen([os.environ['SQUALL'], 'target', '--listen', f'{rig.HOST}:0', '--log', log, *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.url = re.search(r'https?://[\w.:]+', self.process.stdout.readline())[0]
        self.said = ''

    def seen(self):
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0

    def stop(self):
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGINT)
            self.said = self.process.communicate()[0]
        return self.seen()

    def connections(self):
        """How many it accepted, by its own count."""
        self.stop()
        return int(re.search(r'on (\d+) connections', self.said)[1])


class Run:
    def __init__(self, folder, plan, flags, command, environment):
        folder.mkdir()
        self.folder, self.code, self.record, self.said = folder, None, None, ''
        (folder / 'plan.yaml').write_text(plan)
        environment = {**os.environ, 'PATH': f'{rig.BIN}:{os.environ["PATH"]}', 'KUBECONFIG': str(rig.KUBECONFIG), 'NO_COLOR': '1', **environment}
        self.errors = open(folder / 'errors', 'w')
        words = [os.environ['SQUALL'], *command, *([folder / 'plan.yaml'] if plan else []), '--results', folder / 'runs', *flags]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=open(folder / 'output', 'w'), stderr=self.errors, env=environment, start_new_session=True)

    def stderr(self):
        return (self.folder / 'errors').read_text()

    def end(self, seconds=400):
        self.code = self.process.wait(seconds)
        self.said = self.stderr()
        records = sorted((self.folder / 'runs').glob('*/run.json'))
        self.record = json.loads(records[-1].read_text()) if records else None
        return self

    def kill(self):
        """As the machine's end would."""
        self.process.kill()
        self.process.wait()

    def children(self, part):
        """The kubectl processes of this controller whose command line has that part."""
        own = []
        for stat in Path('/proc').glob('[0-9]*/stat'):
            try:
                line = (stat.parent / 'cmdline').read_text()
                if stat.read_text().rsplit(')', 1)[1].split()[1] == str(self.process.pid) and part in line:
                    own.append(int(stat.parent.name))
            except OSError:
                pass
        return own

    # What the record says.

    def ok(self, of=None):
        return sum(row['ok'] for row in (of or self.record['total'])['rows'])

    def interrupted(self):
        return sum(row.get('interrupted', 0) for row in self.record['total']['rows'])

    def parts(self, kind):
        return {part['name']: part for part in self.record['parts'] if part['kind'] == kind}

    def counts(self, kind):
        return {name: self.ok(part['total']) for name, part in self.parts(kind).items()}

    def reasons(self):
        return json.dumps(self.record['verdict'])

    def skew_ms(self):
        return self.record['start_skew']['secs'] * 1e3 + self.record['start_skew']['nanos'] / 1e6

    def ends_with(self, code):
        invalid = self.record and self.record['verdict']['status'] == 'INVALID'
        assert self.code == code or (invalid and code == 0 and self.code == INVALID), f'exit code {self.code}, not {code}:\n{self.said[-3000:]}'
        return self

    def says(self, *parts):
        for part in parts:
            # Lines are wrapped for terminals.
            assert part in ' '.join(self.said.split()), f'{part!r} is not said:\n{self.said[-3000:]}'
        return self


def refuses(run, *parts):
    """Nothing was sent, and why is said."""
    run.ends_with(2).says(*parts, 'help:')
    assert run.record is None
    return run


def histogram(total):
    """The buckets of a part's latencies, of all rows, by their numbers."""
    counts = Counter()
    for row in total['rows']:
        number = 0
        buckets = row['latency']['buckets']
        for step, count in zip(buckets[::2], buckets[1::2]):
            number += step
            counts[number] += count
    return counts


def wait_for(is_so, what, run):
    """Waits for something that happens while a run goes on."""
    deadline = time.monotonic() + 300
    while not is_so():
        assert run.process.poll() is None, f'the run ended before {what}:\n{run.stderr()[-3000:]}'
        assert time.monotonic() < deadline, f'{what}: not within 300 s:\n{run.stderr()[-3000:]}'
        time.sleep(0.1)
