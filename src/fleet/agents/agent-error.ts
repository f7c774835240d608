/** Why an agent gave no answer. */

export type AgentErrorCode =
  /** No connection: nothing listens, no route, no TLS, or none in time. */
  | 'unreachable'
  /** The connection ended before the answer did. */
  | 'lost'
  /** No answer within the time there was. */
  | 'timeout'
  /** The agent does not answer this client's certificate. */
  | 'refused'
  /** The agent has too much to do, or says that it failed. */
  | 'overloaded'
  /** The agent finds the request wrong; asking another agent the same would not help. */
  | 'rejected'
  /** The answer is too large or not what the API says. */
  | 'bad-answer';

export class AgentError extends Error {
  readonly code: AgentErrorCode;
  /** Whether another agent, or this one later, may answer. */
  readonly temporary: boolean;
  /** URL of the agent. */
  readonly where: string;
  constructor(code: AgentErrorCode, where: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'AgentError';
    this.code = code;
    this.temporary = code !== 'rejected';
    this.where = where;
  }
}
