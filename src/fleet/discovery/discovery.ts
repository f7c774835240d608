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
