/**
 * Every parser has a fuzz target, which gets some dozens of inputs with a fixed seed, and its own examples. A parser
 * is a function with a parser's name, or one that calls JSON.parse.
 */
import { spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { sized } from '../exhaustive.ts';
import { processTargets } from './processes.ts';
import { assertFuzz, feed, FuzzFinding, type FuzzTarget } from './target.ts';
import { parserTargets, targets } from './targets.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const script = fileURLToPath(new URL('feed-examples.ts', import.meta.url));

/** Functions without a target despite their name, with the reason. */
const exceptions: Readonly<Record<string, string>> = {
  'cmd/explain/named-objects.ts readNamedObjects': 'gets objects from the API server; parses nothing',
  'cmd/explain/policies.ts readNodeClasses': 'gets objects from the API server; parses nothing',
  'cmd/explain/policies.ts readPolicies': 'gets objects from the API server; parses nothing',
  'cmd/installation/installation.ts readInstallation': 'gets objects from the API server; parses nothing',
  'cmd/objects/pull-secrets.ts readPullSecretFiles':
    'reads files; manifest files and pull secrets have targets',
  'cmd/objects/documents.ts readText': 'reads a file; parseObjects has a target',
  'cmd/objects/documents.ts readStandardInput': 'reads bytes',
  'cmd/report/prices/prices.ts readPrices': 'reads a file; parsePrices has a target',
  'daemon/kubelet/config/read-config.ts readSetup': 'reads files; CredentialProviderConfig has a target',
  'daemon/kubelet/config/read-config.ts readConfig': 'reads files; CredentialProviderConfig has a target',
  'src/controller/features/misplaced/misplaced-pod.ts readMisplaced':
    'gets objects from the API server; parses nothing',
  'src/controller/features/webhook-configuration/webhook-configuration.ts isSame':
    'compares objects of the API server; parses what it wrote',
  'src/controller/state/webhooks-file.ts readCaBundles': 'calls readCaBundle, which has a target',
  'src/controller/write/own-data.ts readSecret': 'gets an object from the API server; parses nothing',
  'src/files/read.ts readDirectory': 'reads files',
  'src/files/read.ts readText': 'reads a file; its lines have a target',
  'src/fleet/connection.ts jsonOf': 'facts and the information of an agent have targets',
  'src/serving/body.ts readBody': 'runs in a process: the bodies of requests are targets there',
};

interface ScriptCoverage {
  readonly url: string;
  readonly functions: readonly {
    readonly functionName: string;
    readonly ranges: readonly { readonly count: number }[];
  }[];
}

const name =
  /^export (?:async )?function ((?:parse|read|decode)[A-Z]\w*)|^\s*(?:async )?function (\w+)[^;{]*\{(?=[^}]*\b(?:JSON\.parse|parseJson)\()/gm;

/** `path name` of each parser in the program. */
function parsers(): string[] {
  return globSync('{cmd,src,daemon}/**/*.ts', { cwd: root })
    .sort()
    .flatMap((path) =>
      [...readFileSync(join(root, path), 'utf8').matchAll(name)].map(
        ([, exported, inner]) => `${path} ${exported ?? inner}`,
      ),
    );
}

/** `path name` of each function that the examples of the targets call. */
function called(): ReadonlySet<string> {
  const dir = mkdtempSync(join(tmpdir(), 'archwright-coverage-'));
  try {
    // By `env -i`, because tap adds variables to child processes when it measures coverage itself.
    const variables = [`PATH=${process.env['PATH'] ?? ''}`, `NODE_V8_COVERAGE=${dir}`];
    const command = ['-i', ...variables, process.execPath, script];
    const { status, stderr } = spawnSync('env', command, { encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
    const found = new Set<string>();
    for (const file of readdirSync(dir)) {
      const { result } = JSON.parse(readFileSync(join(dir, file), 'utf8')) as { result: ScriptCoverage[] };
      for (const { url, functions } of result) {
        if (!url.startsWith(`file://${root}`)) continue;
        const path = fileURLToPath(url).slice(root.length);
        for (const { functionName, ranges } of functions)
          if ((ranges[0]?.count ?? 0) > 0) found.add(`${path} ${functionName}`);
      }
    }
    return found;
  } finally {
    rmSync(dir, { recursive: true });
  }
}

t.test('a target feeds every parser', async (t) => {
  const all = parsers();
  const reached = called();
  t.ok(all.length > 60, `${all.length} parsers`);
  const missing = all.filter((parser) => !reached.has(parser) && !Object.hasOwn(exceptions, parser));
  t.strictSame(missing, [], 'each needs a target in test/support/fuzz');
  const known = Object.keys(exceptions);
  t.strictSame(
    known.filter((parser) => !all.includes(parser) || reached.has(parser)),
    [],
    'outdated exceptions',
  );
});

for (const target of parserTargets) {
  t.test(target.name, async (t) => {
    t.teardown(() => target.close?.());
    await t.resolves(assertFuzz(target, target.runs ?? sized(30, 300)));
  });
}

t.teardown(async () => {
  for (const { close } of processTargets) await close?.();
});
for (const target of processTargets) {
  t.test(target.name, async (t) => {
    await t.resolves(assertFuzz(target, sized(20, 100)));
    t.ok(await target.check?.(), 'a valid request succeeds, and memory is below the limit of the chart');
  });
}

t.test('each target accepts at least one of its examples', async (t) => {
  for (const { name, examples, feed, close } of parserTargets) {
    let understood = 0;
    for (const example of examples) {
      try {
        await feed(Buffer.from(example), example);
        understood += 1;
      } catch {
        // Some examples are invalid.
      }
    }
    t.ok(understood > 0, name);
    await close?.();
  }
});

t.test('names of targets are unique', async (t) => {
  t.equal(new Set(targets.map(({ name }) => name)).size, targets.length);
});

t.test('a target that breaks a rule fails', async (t) => {
  const target: FuzzTarget = {
    name: 'x',
    examples: ['x'],
    words: [],
    expected: [RangeError],
    feed: (input) => {
      if (input.length === 0) throw new RangeError('expected');
      throw new TypeError('unexpected');
    },
  };
  await t.resolves(feed(target, Buffer.alloc(0)));
  await t.rejects(feed(target, Buffer.from('x')), FuzzFinding);
  await t.rejects(assertFuzz(target, 100), /unexpected/);
});
