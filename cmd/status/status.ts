import type { Part } from '../installation/replicas.ts';

/** What `archwright status` shows. Also the output of `--output json`. Times are ISO 8601. */
export interface Status {
  readonly namespace: string;
  readonly replicas: readonly {
    readonly part: Part;
    readonly name: string;
    readonly node: string | undefined;
    readonly version: string | undefined;
    readonly ready: boolean;
    readonly leads: boolean;
    readonly configuration: string | undefined;
    /** Whether this is the configuration of the ConfigMap; `undefined`: one of them is not known. */
    readonly inForce: boolean | undefined;
  }[];
  readonly webhooks: {
    /** As the leader sees it: `in-force`, `waiting`, …; `undefined`: no leader answered. */
    readonly state: string | undefined;
    /** Webhooks of the MutatingWebhookConfiguration. */
    readonly registered: number | undefined;
    readonly failurePolicies: readonly string[];
  };
  readonly certificates: readonly {
    readonly replica: string;
    readonly use: string;
    readonly expires: string;
  }[];
  readonly nodes: number | undefined;
  readonly agents: readonly {
    readonly daemonSet: string;
    readonly pool: string | undefined;
    readonly wanted: number;
    readonly ready: number;
  }[];
  readonly gated: {
    /** As the leader sees them. */
    readonly byReason: readonly { readonly reason: string; readonly age: string; readonly pods: number }[];
    /** `undefined`: pods may not be listed. */
    readonly oldest: readonly { readonly pod: string; readonly since: string }[] | undefined;
  };
  readonly taints: {
    readonly nodesWaiting: number | undefined;
    /** `undefined`: no leader answered. */
    readonly heldBackBy: Readonly<Record<string, number>> | undefined;
  };
  readonly misplacedPods: number | undefined;
  readonly brokenImages:
    | readonly {
        readonly image: string;
        readonly architecture: string;
        readonly until: string;
      }[]
    | undefined;
  /** Credentials of nodes that are not used, and why. `undefined`: nothing that reports them may be read. */
  readonly credentialProblems: readonly string[] | undefined;
  /** Programs that nodes could not execute. `undefined`: no agent traces them, or no leader answered. */
  readonly programErrors:
    { readonly containers: number; readonly nodes: Readonly<Record<string, number>> } | undefined;
  /** Requests that Docker Hub allows the node that has the smallest part left. `undefined`: it did not say. */
  readonly dockerHub: { readonly limit: number; readonly remaining: number } | undefined;
  /** What someone has to look at. */
  readonly findings: readonly string[];
  /** What could not be read, and why. */
  readonly unread: readonly string[];
}
