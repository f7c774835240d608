/** The field `execErrors` of an agent's `/v1/info`: programs in containers that the node could not execute. */
import { isRecord } from '../names/values.ts';

export interface ExecError {
  /** UID of the pod, as the kubelet names its control group. */
  readonly pod: string;
  /** ID that the runtime gave the container. */
  readonly container: string;
  /** Name of the process that tried to execute the file, if it is known. */
  readonly program?: string;
}

/**
 * `no-tracefs`, `no-events`: the kernel lacks them. `refused`: by its lockdown, or by SELinux or AppArmor.
 * `nested`: the node is a container itself.
 */
export const tracingStates = ['on', 'no-tracefs', 'no-events', 'refused', 'nested', 'failed'] as const;
export type TracingState = (typeof tracingStates)[number];

export interface ExecReport {
  readonly state: TracingState;
  readonly errors: readonly ExecError[];
}

/** Together some 6 KB, far below half the limit of an answer (32 KiB). */
export const maxExecErrors = 30;

const podUid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const containerId = /^[0-9a-f]{64}$/;
/** A name of a process has up to 15 bytes (TASK_COMM_LEN in the kernel's include/linux/sched.h). */
const programName = /^[\x20-\x7e]{1,15}$/;

/** What an agent has sent. Its node may be compromised, so implausible entries are dropped. */
export function readExecReport(value: unknown): ExecReport | undefined {
  if (!isRecord(value)) return undefined;
  const state = tracingStates.find((each) => each === value['state']);
  if (state === undefined) return undefined;
  const given: readonly unknown[] = Array.isArray(value['errors']) ? value['errors'] : [];
  const errors = given.slice(0, maxExecErrors).flatMap((item): ExecError[] => {
    const { pod, container, program } = isRecord(item) ? item : {};
    if (typeof pod !== 'string' || !podUid.test(pod)) return [];
    if (typeof container !== 'string' || !containerId.test(container)) return [];
    const isName = typeof program === 'string' && programName.test(program);
    return [{ pod, container, ...(isName && { program }) }];
  });
  return { state, errors };
}
