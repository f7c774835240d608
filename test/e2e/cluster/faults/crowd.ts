/** Pods of a fault test that are created together, and what each of them must come to. */
import type { Test } from 'tap';
import { termsOf } from '../../../support/placement-input.ts';
import type { Cluster } from '../harness.ts';
import type { Images } from '../images.ts';
import { isGated, podOf, type PodNow } from '../pods.ts';
import type { Watched } from '../watch.ts';

export type Crowd = Awaited<ReturnType<typeof createCrowd>>;

export interface CrowdOptions {
  readonly name: string;
  readonly count: number;
  /** Whether every tenth has an image that no registry has. */
  readonly withUnknown?: boolean;
}

export interface Ground {
  readonly cluster: Cluster;
  readonly images: Images;
  readonly pods: Watched<PodNow>;
}

export const maxGateMs = 15_000;
/** Allowed beyond maxGateDuration while something fails. */
export const graceMs = 30_000;
export const kinds = [['arm64'], ['amd64', 's390x'], ['s390x'], ['amd64', 'arm64']] as const;

/** Creates pods. The registry does not answer for their images until `release`. */
export async function createCrowd(t: Test, { cluster, images, pods }: Ground, options: CrowdOptions) {
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
      await cluster.create(podOf(one.name, one.image));
    }
  };
  await Promise.all(Array.from({ length: 8 }, work));
  const now = (each: string): PodNow | undefined => pods.objects.get(`default/${each}`);

  return {
    names: wanted.map((one) => one.name),
    /** Makes the registry answer for their images. */
    release: (): void => {
      clear();
      known.resolve();
    },
    gated: (): Promise<boolean> =>
      pods.until(`${name}: all are gated`, () => wanted.every((one) => isGated(now(one.name)))),
    /** Waits until all are bound, and checks each. */
    end: async (): Promise<void> => {
      const left = Math.max(1000, maxGateMs + graceMs - (performance.now() - created));
      await allPlaced(t, pods, name, wanted, left);
    },
  };
}

/** Waits until all pods are bound, and checks each: none is lost, and each requires what its image can run on. */
export async function allPlaced(
  t: Test,
  pods: Watched<PodNow>,
  about: string,
  wanted: readonly { readonly name: string; readonly architectures: readonly string[] | undefined }[],
  ms: number,
): Promise<void> {
  const now = (name: string): PodNow | undefined => pods.objects.get(`default/${name}`);
  const unbound = (): typeof wanted => wanted.filter(({ name }) => !now(name)?.spec.nodeName);
  await pods.until(`${about}: all are bound`, () => unbound().length === 0, ms).catch(() => undefined);
  const lost = unbound().map(({ name }) => summary(now(name)));
  t.same(lost, [], `${about}: no pod is lost, or gated longer than maxGateDuration`);
  const isWrong = ({ name, architectures }: (typeof wanted)[number]): boolean =>
    !isRight(now(name), architectures);
  const wrong = wanted.filter(isWrong).map(({ name }) => summary(now(name)));
  t.same(wrong, [], `${about}: every pod requires what its images can run on`);
}

/** Bound to a node that can run its images, by a requirement for exactly their architectures; without one if they are unknown. */
function isRight(pod: PodNow | undefined, architectures: readonly string[] | undefined): boolean {
  const terms = pod && termsOf(pod);
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

function summary(pod: PodNow | undefined): unknown {
  return pod && [pod.metadata?.name, pod.spec.nodeName, pod.spec.schedulingGates, pod.metadata?.annotations];
}
