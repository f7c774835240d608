/**
 * Rendezvous (highest random weight) hashing, after Thaler and Ravishankar, "A Name-Based Mapping Scheme for
 * Rendezvous", 1996: each pair of repository and agent has a score, and the agent with the highest score owns
 * the repository. Every webhook computes the same owner without talking to the others, and when an agent
 * leaves only what it owned moves.
 */
import { BoundedMap } from '../../async/bounded-map.ts';
import type { AgentAddress } from '../discovery/discovery.ts';

/** Agents in the order of lookups: the repository's owner first. @param repository `domain/path` */
export function rank(repository: string, agents: readonly AgentAddress[]): AgentAddress[] {
  const key = hash(repository);
  return agents
    .map((agent) => ({ agent, id: identity(agent), score: mix(key ^ hash(identity(agent))) }))
    .sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1))
    .map((scored) => scored.agent);
}

/** Owners to remember: one for each repository of a large cluster, 1 MiB. */
const maxOwners = 10_000;

/** The owner of a repository among these agents: the first of `rank`. Each repository is computed once. */
export function createOwnerOf(
  agents: readonly AgentAddress[],
): (repository: string) => AgentAddress | undefined {
  const known = new BoundedMap<string, AgentAddress>(maxOwners);
  const candidates = agents.map((agent) => ({ agent, id: identity(agent), hashed: hash(identity(agent)) }));

  function find(repository: string): AgentAddress | undefined {
    const key = hash(repository);
    let [owner] = candidates;
    let highest = -1;
    for (const candidate of candidates) {
      const score = mix(key ^ candidate.hashed);
      if (score < highest || (score === highest && owner && owner.id < candidate.id)) continue;
      owner = candidate;
      highest = score;
    }
    return owner?.agent;
  }

  return (repository) => {
    const owner = known.peek(repository);
    if (owner) return owner;
    const found = find(repository);
    if (found) known.set(repository, found);
    return found;
  };
}

/** The node outlives its agent's address; the URL is used if discovery does not know the node. */
function identity(agent: AgentAddress): string {
  return agent.node ?? agent.url;
}

/** FNV-1a, 32 bits, over UTF-16 units. It need not resist attacks: it only chooses an agent. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    state = Math.imul(state ^ text.charCodeAt(index), 0x01000193);
  }
  return state;
}

/** The finalizer of MurmurHash3: every bit of the input changes half of the bits of the result. */
function mix(value: number): number {
  let bits = value;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
