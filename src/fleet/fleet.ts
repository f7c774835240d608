/** The webhook's and the controller's side of the agents. */
import type { ImageFacts, Inspector } from '../images/facts.ts';

/** An agent as discovery found it. */
export interface AgentAddress {
  /** `https://host:port`. */
  readonly url: string;
  /** Node it runs on, where discovery knows. */
  readonly node?: string;
}

/** Finds agents: a static list, DNS, or EndpointSlices. */
export interface Discovery {
  /** The agents now; may be empty. */
  current(): readonly AgentAddress[];
  /** Resolves when the first answer is there, at the latest when `signal` aborts. */
  ready(signal: AbortSignal): Promise<void>;
  onChange(listener: () => void): void;
  close(): void;
}

/** The agents as one inspector: the owner of a repository is asked first, others when it fails. */
export interface Fleet extends Inspector {
  /** What the agents know already, for a webhook that starts. Ends when all have told or `signal` aborts. */
  known(signal: AbortSignal): AsyncIterable<ImageFacts>;
  close(): void;
}
