/** What another program's Deployment tells: its image, and the flags it is started with. */
import { isObject, type JsonObject } from '../../src/webhook/validate-pod.ts';

/** Whether a container of the Deployment has an image like this. */
export function usesImage(document: JsonObject, image: RegExp): boolean {
  return containersOf(document).some(
    (container) => typeof container['image'] === 'string' && image.test(container['image']),
  );
}

/** `-flag=value`, `--flag value` and `-switch` of all containers, by name without dashes. */
export function argumentsOf(document: JsonObject): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const container of containersOf(document)) {
    const words = [...textsOf(container['command']), ...textsOf(container['args'])];
    for (const [index, word] of words.entries()) {
      const [, name, value] = /^--?([a-z][-a-z0-9]*)(?:=(.*))?$/s.exec(word) ?? [];
      if (name === undefined) continue;
      const next = words[index + 1];
      found[name] = value ?? (next === undefined || next.startsWith('-') ? 'true' : next);
    }
  }
  return found;
}

function containersOf(document: JsonObject): readonly JsonObject[] {
  const template = within(within(document, 'spec'), 'template');
  const containers = within(template, 'spec')['containers'];
  return Array.isArray(containers) ? containers.filter(isObject) : [];
}

function within(object: JsonObject, key: string): JsonObject {
  const value = object[key];
  return isObject(value) ? value : {};
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}
