/** Names of the objects that archwright keeps in its own namespace. The chart's roles have the same names. */

/** @param name the setting `name`: the chart's full name */
export function ownNames({ name }: { readonly name: string }) {
  return {
    lease: `${name}-controller`,
    brokenImages: `${name}-broken-images`,
    drift: `${name}-drift`,
    report: `${name}-report`,
    /** The CA and its key, only for the controller. */
    caSecret: `${name}-ca`,
    webhookTlsSecret: `${name}-webhook-tls`,
    /** Another name than the built-in one: the service CA of OpenShift replaces no Secret of others. */
    serviceCaSecret: `${name}-webhook-serving-cert`,
    agentTlsSecret: `${name}-agent-tls`,
    /** Client certificates for agents. */
    webhookClientTlsSecret: `${name}-webhook-client-tls`,
    controllerClientTlsSecret: `${name}-controller-client-tls`,
  } as const;
}
