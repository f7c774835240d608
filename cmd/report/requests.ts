/**
 * The requests of a pod, as the scheduler counts it: containers and sidecars together, or the
 * largest init container with the sidecars before it, and the overhead of its runtime class. Pod-level
 * resources win.
 * @see kubernetes component-helpers resource/helpers.go, `PodRequests`
 */
import { parseQuantity } from '../../src/names/quantity.ts';
import type { Container, PodSpec } from '../../src/kube/api/objects.ts';

/** CPU in cores, memory in bytes. */
export interface Requests {
  readonly cpu: number;
  readonly memory: number;
}

interface Requesting {
  readonly resources?: { readonly requests?: Readonly<Record<string, unknown>> };
}

type RequestingSpec = PodSpec & Requesting & { readonly overhead?: Readonly<Record<string, unknown>> };

export const noRequests: Requests = { cpu: 0, memory: 0 };

export function sum(a: Requests, b: Requests): Requests {
  return { cpu: a.cpu + b.cpu, memory: a.memory + b.memory };
}

export function requestsOfContainer(container: Container): Requests {
  return read((container as Requesting).resources?.requests);
}

export function requestsOfPod(spec: PodSpec): Requests {
  const { initContainers = [], containers, overhead, resources } = spec as RequestingSpec;
  let sidecars = noRequests;
  let starting = noRequests;
  for (const container of initContainers) {
    const own = requestsOfContainer(container);
    const moment = sum(sidecars, own);
    if (container.restartPolicy === 'Always') sidecars = moment;
    starting = largest(starting, moment);
  }
  const running = (containers ?? []).map(requestsOfContainer).reduce(sum, sidecars);
  const needed = largest(starting, running);
  const whole = resources?.requests;
  return sum(
    {
      cpu: parseQuantity(whole?.['cpu']) ?? needed.cpu,
      memory: parseQuantity(whole?.['memory']) ?? needed.memory,
    },
    read(overhead),
  );
}

function read(requests: Readonly<Record<string, unknown>> | undefined): Requests {
  return { cpu: parseQuantity(requests?.['cpu']) ?? 0, memory: parseQuantity(requests?.['memory']) ?? 0 };
}

function largest(a: Requests, b: Requests): Requests {
  return { cpu: Math.max(a.cpu, b.cpu), memory: Math.max(a.memory, b.memory) };
}
