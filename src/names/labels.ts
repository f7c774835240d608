/** Syntax of label keys and values, by kubernetes `apimachinery/pkg/util/validation`. */

const value = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const domain = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const maxDomainLength = 253;

/** Whether a text may stand as a label's value and is not empty. Architecture names must be such texts. */
export function isLabelValue(text: string): boolean {
  return value.test(text);
}

/** Whether a text may stand as a label's or a taint's key: a name, or a DNS domain, a slash and a name. */
export function isLabelKey(text: string): boolean {
  const slash = text.indexOf('/');
  if (slash < 0) return value.test(text);
  const prefix = text.slice(0, slash);
  return prefix.length <= maxDomainLength && domain.test(prefix) && value.test(text.slice(slash + 1));
}
