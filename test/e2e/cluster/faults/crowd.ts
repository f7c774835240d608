/** Pods of a test of faults: created together, and what each of them must come to. */
import type { Test } from 'tap';
import type { Pod } from '../../../../src/kube/api/objects.ts';
import type { Cluster } from '../harness.ts';
import type { Images } from '../images.ts';
import type { Watched } from '../watch.ts';

export interface PodNow extends Pod {
  readonly status?: { readonly phase?: string };
}

/** Pods that were created together, and what they must come to. */
export interface Crowd {
  readonly names: readonly string[];
  /** Lets their images become known. */
  release(): void;
  /** Waits until all wait behind our gate. */
  gated(): Promise<void>;
  /** Waits until all are bound, and checks each. */
  end(): Promise<void>;
}

export interface CrowdOptions {
  readonly name: string;
  readonly count: number;
  /** Whether some have an image that no registry has. */
  readonly withUnknown?: boolean;
}

/** What pods are created in, and seen by. */
export interface Ground {
  readonly cluster: Cluster;
  readonly images: Images;
  readonly pods: Watched<PodNow>;
}

export const maxGateMs = 15_000;
/** What the issue of faults allows on top. */
export const graceMs = 30_000;
export const kinds = [['arm64'], ['amd64', 's390x'], ['s390x'], ['amd64', 'arm64']] as const;

/** Creates them; their images become known only when the test lets them. */
export async function createCrowd(
  t: Test,
  { cluster, images, pods }: Ground,
  options: CrowdOptions,
): Promise<Crowd> {
  const { name, count, withUnknown = false } = options;
  const references = kinds.map((architectures, index) =>
    images.push(`${name}-${index}`, architectures, 'troubled'),
  );
  const known = Promise.withResolvers<void>();
  const path = new RegExp(`/${name}-[0-9]/`);
  const clear = images.troubled.faults.add({ path, fault: { kind: 'after', event: known.promise } });
  const wanted = Array.from({ length: count }, (_, index) => {
    const unknown = withUnknown && index % 10 === 9;
    return {
      name: `${name}-${index}`,
      image: unknown ? `${images.troubled.host}/${name}-absent:1` : (references[index % kinds.length] ?? ''),
      architectures: unknown ? undefined : kinds[index % kinds.length],
    };
  });
  const created = performance.now();
  const left = [...wanted];
  const work = async (): Promise<void> => {
    for (let one = left.shift(); one !== undefined; one = left.shift()) {
      await cluster.create({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: one.name },
        spec: { containers: [{ name: 'app', image: one.image }] },
      });
    }
  };
  await Promise.all(Array.from({ length: 8 }, work));
  const now = (each: string): PodNow | undefined => pods.objects.get(`default/${each}`);

  return {
    names: wanted.map((one) => one.name),
    release: () => {
      clear();
      known.resolve();
    },
    gated: async () => {
      await pods.until(`${name}: all are gated`, () => wanted.every((one) => isGated(now(one.name))));
    },
    end: async () => {
      const rest = Math.max(1000, maxGateMs + graceMs - (performance.now() - created));
      const late = await pods
        .until(`${name}: all are bound`, () => wanted.every((one) => now(one.name)?.spec.nodeName), rest)
        .then(
          () => [],
          () => wanted.filter((one) => !now(one.name)?.spec.nodeName),
        );
      t.same(
        late.map((one) => summary(now(one.name))),
        [],
        `${name}: no pod is lost, or gated longer than it may be`,
      );
      const wrong = wanted.filter((one) => !isRight(now(one.name), one.architectures));
      t.same(
        wrong.map((one) => summary(now(one.name))),
        [],
        `${name}: every pod requires what its images can run on`,
      );
    },
  };
}

/** Bound where its images can run, by a requirement that says just that; where they are unknown, by none. */
export function isRight(pod: PodNow | undefined, architectures: readonly string[] | undefined): boolean {
  const terms =
    pod?.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  if (architectures === undefined) return terms === undefined;
  const required = (terms ?? []).flatMap((term) => term.matchExpressions ?? []);
  const [only] = required;
  return (
    required.length === 1 &&
    only?.key === 'kubernetes.io/arch' &&
    [...(only.values ?? [])].sort().join() === [...architectures].sort().join() &&
    architectures.includes((pod?.spec.nodeName ?? '').split('-')[0] ?? '')
  );
}

export function isGated(pod: PodNow | undefined): boolean {
  return (pod?.spec.schedulingGates ?? []).some(({ name }) => name === 'arch.example/scheduling-gate');
}

export function summary(pod: PodNow | undefined): unknown {
  return pod && [pod.metadata?.name, pod.spec.nodeName, pod.spec.schedulingGates, pod.metadata?.annotations];
}
