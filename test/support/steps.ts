/** Steps of a leader's operations: before and after each write. Tests stop or change something there. */
import type { Feature, LeaderContext } from '../../src/controller/lead/feature.ts';
import type { KubeClient } from '../../src/kube/api/client.ts';

/** @param name such as `after patch /api/v1/nodes/a`; a JSON patch follows */
export type Step = (name: string) => Promise<void> | void;

/** Calls `step` before each write, and after each that succeeded. */
export function steppingClient(client: KubeClient, step: Step): KubeClient {
  const around = async <T>(what: string, write: () => Promise<T>): Promise<T> => {
    await step(`before ${what}`);
    const result = await write();
    await step(`after ${what}`);
    return result;
  };
  return {
    ...client,
    create: (path, ...rest) => around(`create ${path}`, () => client.create(path, ...rest)),
    delete: (path, ...rest) => around(`delete ${path}`, () => client.delete(path, ...rest)),
    patch: (path, patch, options) => {
      const operations = patch.type === 'json' ? ` ${JSON.stringify(patch.body)}` : '';
      return around(`patch ${path}${operations}`, () => client.patch(path, patch, options));
    },
  };
}

/** The feature, with its name before the steps. An eviction begins after the pod was read again. */
export function steppingFeature(feature: Feature, step: Step): Feature {
  const named: Step = (name) => step(`${feature.name}: ${name}`);
  const evicting =
    ({ evict }: LeaderContext): LeaderContext['evict'] =>
    async (owner, read) => {
      const eviction = await evict(owner, async () => {
        const pod = await read();
        if (pod) await named('before eviction');
        return pod;
      });
      if (eviction.outcome === 'evicted') await named('after eviction');
      return eviction;
    };
  return {
    ...feature,
    start: (leader, enqueue) => {
      const client = steppingClient(leader.client, named);
      return feature.start({ ...leader, client, evict: evicting(leader) }, enqueue);
    },
  };
}
