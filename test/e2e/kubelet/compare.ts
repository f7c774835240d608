/** Differences between the two sides of an image, and the intended ones (docs/internals/deviations.md). */
import type { Observation, Run } from './recorder.ts';

export interface Difference {
  readonly image: string;
  readonly what: 'outcome' | 'presented' | 'runs' | 'request' | 'arguments' | 'environment';
  readonly kubelet: string;
  readonly agent: string;
  /** Name of the deviation, if the difference is intended. */
  readonly deviation?: string;
}

export interface Circumstances {
  readonly tokenPlugins: ReadonlySet<string>;
  /** Plugins whose responses are cached per token. */
  readonly byToken: ReadonlySet<string>;
  readonly failingPlugins: ReadonlySet<string>;
  /** Whether an image of the repository was pulled before in this run of the kubelet. */
  readonly pulledBefore: boolean;
  /** Whether a docker configuration was changed under the running kubelet. */
  readonly filesChanged: boolean;
}

export function compare(kubelet: Observation, agent: Observation, about: Circumstances): Difference[] {
  const differences = [
    ...compareOutcome(kubelet, agent),
    ...comparePresented(kubelet, agent),
    ...compareRuns(kubelet, agent, about),
  ];
  const consequence = consequenceOf(differences, about);
  return differences.map((difference) =>
    difference.deviation !== undefined || consequence === undefined
      ? difference
      : { ...difference, deviation: consequence },
  );
}

/** A source that only one side has changes the credentials, and so the outcome. */
function consequenceOf(differences: readonly Difference[], about: Circumstances): string | undefined {
  if (about.filesChanged) return 'live-docker-config';
  const token = 'service-account-tokens';
  return differences.some(({ deviation }) => deviation === token) ? token : undefined;
}

/** The kubelet reports each attempt, archwright the most important one. */
function compareOutcome(kubelet: Observation, agent: Observation): Difference[] {
  const { image } = kubelet;
  if (agent.outcome.every((name) => kubelet.outcome.includes(name))) return [];
  return [
    {
      image,
      what: 'outcome',
      kubelet: `${kubelet.outcome.join(', ')} (${kubelet.message})`,
      agent: `${agent.outcome.join(', ')} (${agent.message})`,
    },
  ];
}

function comparePresented(kubelet: Observation, agent: Observation): Difference[] {
  const { image } = kubelet;
  const [theirs, ours] = [kubelet.presented, agent.presented].map((users) => users.join(' → '));
  if (theirs === ours && kubelet.sentRequests === agent.sentRequests) return [];
  const difference: Difference = {
    image,
    what: 'presented',
    kubelet: describePresented(kubelet),
    agent: describePresented(agent),
  };
  const once = [...new Set(kubelet.presented)].join(' → ');
  return [once === ours ? { ...difference, deviation: 'equal-credentials-once' } : difference];
}

function describePresented({ presented, sentRequests }: Observation): string {
  if (!sentRequests) return 'no request';
  return presented.length === 0 ? 'anonymous' : presented.join(' → ');
}

/** Compares each plugin alone: archwright runs those of an image in parallel, the kubelet in sequence. */
function compareRuns(kubelet: Observation, agent: Observation, about: Circumstances): Difference[] {
  const names = new Set([...kubelet.runs, ...agent.runs].map(({ plugin }) => plugin));
  return [...names].flatMap((name) => {
    const [theirs, ours] = [kubelet, agent].map(({ runs }) => runs.filter(({ plugin }) => plugin === name));
    return compareRunsOf(name, kubelet.image, theirs ?? [], ours ?? [], about);
  });
}

function compareRunsOf(
  name: string,
  image: string,
  theirs: readonly Run[],
  ours: readonly Run[],
  about: Circumstances,
): Difference[] {
  if (theirs.length !== ours.length) {
    const deviation = deviationOfRuns(name, theirs.length, ours.length, about);
    return [
      {
        image,
        what: 'runs',
        kubelet: `${name} × ${theirs.length}`,
        agent: `${name} × ${ours.length}`,
        ...(deviation !== undefined && { deviation }),
      },
    ];
  }
  const parts = [
    ['request', ({ stdin }: Run) => withoutToken(stdin)],
    ['arguments', ({ args }: Run) => JSON.stringify(args)],
    ['environment', ({ environment }: Run) => environment.join('\n')],
  ] as const;
  return theirs.flatMap((run, index) =>
    parts.flatMap(([what, of]) => {
      const own = ours[index];
      if (own === undefined || of(run) === of(own)) return [];
      return [{ image, what, kubelet: of(run), agent: of(own) }];
    }),
  );
}

/** Go escapes more characters. Tokens differ; their audience and subject must be equal. */
function withoutToken(request: string): string {
  return JSON.stringify(JSON.parse(request)).replace(
    /"serviceAccountToken":"[^".]+\.([^".]+)\.[^"]+"/,
    (_, payload: string) => {
      const { aud, sub } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<
        string,
        unknown
      >;
      return `"serviceAccountToken":"of ${String(sub)} for ${String(aud)}"`;
    },
  );
}

function deviationOfRuns(
  name: string,
  theirs: number,
  ours: number,
  about: Circumstances,
): string | undefined {
  if (about.tokenPlugins.has(name) && ours === 0) return 'service-account-tokens';
  if (about.byToken.has(name) && about.pulledBefore && ours < theirs) return 'unbound-tokens';
  if (about.failingPlugins.has(name) && about.pulledBefore && ours < theirs) return 'failed-plugins-pause';
  return undefined;
}
