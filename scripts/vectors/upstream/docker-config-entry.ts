/** Writes a docker config entry like kubernetes pkg/credentialprovider/config.go `MarshalJSON`. */
export function encodeDockerConfigEntry(username: string, password: string, email: string): string {
  const auth = Buffer.from(`${username}:${password}`).toString('base64');
  return JSON.stringify({ username, password, email, auth });
}
