/** Pods of a fault test, created together or continuously, and their expected results. */
import type { Test } from 'tap';
import { termsOf } from '../../../support/placement-input.ts';
import type { Cluster } from '../harness.ts';
import type { Images } from '../archwright/images.ts';
import { isGated, podOf, type PodNow } from '../control-plane/pods.ts';
import type { Watched } from '../control-plane/watch.ts';
import { setTimeout as pause } from 'node:timers/promises';
import { concurrently } from '../../../../src/async/concurrently.ts';

export type PodGroup = Awaited<ReturnType<typeof createPodGroup>>;

export interface PodGroupOptions {
  readonly name: string;
  readonly count: number;
  /** Whether every tenth has an image that no registry has. */
  readonly withUnknown?: boolean;
}

export interface PodGroupSetup {
  readonly cluster: Cluster;
  readonly images: Images;
  readonly pods: Watched<PodNow>;
}

export const maxGateMs = 15_000;
/** Allowed beyond maxGateDuration while something fails. */
export const graceMs = 30_000;
export const kinds = [['arm64'], ['amd64', 's390x'], ['s390x'], ['amd64', 'arm64']] as const;

export async function createPodGroup(
  t: Test,
  { cluster, images, pods }: PodGroupSetup,
  options: PodGroupOptions,
) {
  const { name, count, withUnknown = false } = options;
  const references = kinds.map((architectures, index) =>
    images.push(`${name}-${index}`, architectures, 'troubled'),
  );
  const known = Promise.withResolvers<void>();
  const path = new RegExp(`/${name}-[0-9]/`);
  const clear = images.troubled.faults.add(path, { kind: 'after', event: known.promise });
  const wanted = Array.from({ length: count }, (_, index) => {
    const unknown = withUnknown && index % 10 === 9;
    return {
      name: `${name}-${index}`,
      image: unknown ? `${images.troubled.host}/${name}-absent:1` : (references[index % kinds.length] ?? ''),
      architectures: unknown ? undefined : kinds[index % kinds.length],
    };
  });
  const created = performance.now();
  await concurrently(wanted, 8, (one) => cluster.create(podOf(one.name, one.image)));
  const now = (each: string): PodNow | undefined => pods.objects.get(`default/${each}`);

  const podGroup = {
    names: wanted.map((one) => one.name),
    release: (): void => {
      clear();
      known.resolve();
    },
    gated: (): Promise<boolean> =>
      pods.until(`${name}: all are gated`, () => wanted.every((one) => isGated(now(one.name)))),
    end: async (): Promise<void> => {
      const left = Math.max(1000, maxGateMs + graceMs - (performance.now() - created));
      await allPlaced(t, pods, name, wanted, left);
    },
    /** Waits until all are gated, and lets the registry answer. */
    releaseGated: async (): Promise<void> => {
      await podGroup.gated();
      podGroup.release();
    },
  };
  return podGroup;
}

/** Waits until all pods are bound, and checks that each requires architectures of its image. None is lost. */
async function allPlaced(
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
  t.same(wrong, [], `${about}: every pod requires the architectures of its images`);
}

/** Bound to a node for its images and requiring exactly their architectures; none if they are unknown. */
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

const everyMs = 250;

export function startLoad(t: Test, { cluster, images, pods }: PodGroupSetup) {
  const ending = new AbortController();
  const refused: string[] = [];
  const created: { readonly name: string; readonly architectures: readonly string[] }[] = [];
  const gatedAt = new Map<string, number>();
  let longestMs = 0;
  pods.onChange(({ object, at }) => {
    const name = object.metadata?.name ?? '';
    if (!name.startsWith('load-')) return;
    if (isGated(object) && !gatedAt.has(name)) gatedAt.set(name, at);
    if (!isGated(object) && gatedAt.has(name))
      longestMs = Math.max(longestMs, at - (gatedAt.get(name) ?? at));
  });

  const run = async (): Promise<void> => {
    for (let index = 0; !ending.signal.aborted; index += 1) {
      const name = `load-${index}`;
      const architectures = kinds[index % kinds.length] ?? [];
      await cluster.create(podOf(name, images.push(name, architectures))).then(
        () => created.push({ name, architectures }),
        (error: unknown) => refused.push(error instanceof Error ? error.message : String(error)),
      );
      await pause(everyMs);
    }
  };
  const running = run();

  return {
    /** Ends it. Checks that no pod was refused or gated too long, and the requirements of each. */
    end: async (): Promise<void> => {
      ending.abort();
      await running;
      const gated = `${gatedAt.size} of them gated, for ${Math.round(longestMs)} ms at most`;
      t.comment(`${created.length} pods, ${gated}`);
      t.same(refused.slice(0, 5), [], `${refused.length} refused`);
      t.ok(created.length > 100, `${created.length} pods`);
      await allPlaced(t, pods, 'load', created, maxGateMs + graceMs);
      t.ok(longestMs <= maxGateMs + graceMs, 'no pod was gated for longer than allowed');
    },
  };
}
