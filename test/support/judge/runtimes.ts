/**
 * The nodes that can pull and run an image, given the platforms of its index or manifest. Written from the table
 * in docs/use/placement.md and from containerd's documentation; it shares no code with the program.
 */
import type { PoolImage, PoolNode } from './world.ts';

/** `yes` and `no` hold for any unknown property of the node. */
export type Verdict = 'yes' | 'no' | 'maybe';

interface Platform {
  readonly architecture: string;
  readonly variant: string;
}

/** The platforms of an image for Linux, in the order of its index. */
export function linuxPlatforms({ platforms }: PoolImage): readonly Platform[] {
  return platforms.flatMap((text) => {
    const parts = text.split('/');
    const [os = '', architecture = '', variant = ''] =
      parts[0] === 'windows' || parts[0] === 'linux' ? parts : ['linux', ...parts];
    return os === 'linux' ? [{ architecture, variant }] : [];
  });
}

const older = ['v8', 'v7', 'v6', 'v5'];

/** Accepted platforms of a pull method, best first. */
function acceptedPlatforms(method: string, architecture: string, level: number): readonly string[] {
  if (method === 'exact') return [architecture];
  const levels = [4, 3, 2]
    .filter((each) => method === 'docker' && each <= level)
    .map((each) => `amd64/v${each}`);
  if (architecture === 'amd64') return [...levels, 'amd64', '386'];
  if (architecture === 'arm64') return ['arm64', ...older.map((variant) => `arm/${variant}`)];
  return [architecture];
}

function pullMethodsOf({ runtime = '' }: PoolNode): readonly string[] {
  if (runtime.startsWith('containerd://1.')) return ['local'];
  if (runtime.startsWith('containerd://2.')) return ['local', 'exact'];
  return runtime.startsWith('cri-o://') ? ['exact'] : ['local', 'exact', 'docker'];
}

function cpuRuns(
  { architecture, variant }: Platform,
  node: PoolNode,
  level: number,
  arm32: boolean,
): boolean {
  if (architecture === 'amd64' && node.architecture === 'amd64')
    return level >= Number(variant.slice(1) || 1);
  if (architecture === '386') return node.architecture === 'amd64';
  if (architecture === 'arm') return node.architecture === 'arm64' && arm32;
  return architecture === node.architecture;
}

const verdicts = new Map<string, Verdict>();

/** Whether a node can pull and run an image. */
export function verdictOf(image: PoolImage, node: PoolNode): Verdict {
  const key = `${image.repository} ${node.name}`;
  const verdict = verdicts.get(key) ?? findVerdict(image, node);
  verdicts.set(key, verdict);
  return verdict;
}

function findVerdict(image: PoolImage, node: PoolNode): Verdict {
  const platforms = linuxPlatforms(image);
  const levels = node.level === undefined ? [1, 2, 3, 4] : [node.level];
  const results = new Set<boolean>();
  for (const method of pullMethodsOf(node))
    for (const level of levels)
      for (const arm32 of [true, false]) {
        const names = acceptedPlatforms(method, node.architecture, level);
        const isNamed = ({ architecture, variant }: Platform, name: string): boolean =>
          name === (variant === '' || architecture === 'arm64' ? architecture : `${architecture}/${variant}`);
        const pulled = isIndex(image)
          ? names
              .map((name) => platforms.find((each) => isNamed(each, name)))
              .find((each) => each !== undefined)
          : platforms[0];
        results.add(pulled !== undefined && cpuRuns(pulled, node, level, arm32));
      }
  if (results.size === 2) return 'maybe';
  return results.has(true) ? 'yes' : 'no';
}

/** A single manifest is pulled as it is. */
export function isIndex({ platforms, form }: PoolImage): boolean {
  return form === 'index' || platforms.length > 1;
}
