/**
 * Rendezvous hashing (Thaler and Ravishankar, "A Name-Based Mapping Scheme for Rendezvous", 1996): the agent with
 * the highest score for a repository owns it. Every webhook computes the same owner, and when an agent leaves
 * only what it owned moves.
 */
import { fnv1a } from '../names/hash.ts';
import type { AgentAddress } from './discovery.ts';

/** The order of these agents for each repository (`domain/path`). */
export class Ranking {
  readonly #candidates: readonly { readonly agent: AgentAddress; readonly hash: number }[];

  constructor(agents: readonly AgentAddress[]) {
    // The node outlives its agent's address; the URL is used if discovery does not know the node.
    const idOf = ({ node, url }: AgentAddress): string => node ?? url;
    this.#candidates = agents
      .toSorted((a, b) => (idOf(a) < idOf(b) ? -1 : 1))
      .map((agent) => ({ agent, hash: fnv1a(idOf(agent)) }));
  }

  /** Agents in the order of lookups: the repository's owner first. */
  order(repository: string): AgentAddress[] {
    const key = fnv1a(repository);
    const byScore = this.#candidates.toSorted((a, b) => mix(key ^ b.hash) - mix(key ^ a.hash));
    return byScore.map(({ agent }) => agent);
  }

  /** The first of `order`, without the cost of sorting: the facts of a large cluster are 100,000. */
  owner(repository: string): AgentAddress | undefined {
    const key = fnv1a(repository);
    let [owner] = this.#candidates;
    for (const each of this.#candidates)
      if (owner && mix(key ^ each.hash) > mix(key ^ owner.hash)) owner = each;
    return owner?.agent;
  }
}

/** The finalizer of MurmurHash3: every bit of the input changes half of the bits of the result. */
function mix(value: number): number {
  let bits = value;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
