/** What a person does with the door. */
import { call, client, type DoorState } from '$lib/api';

/** Host and port as the settings have them. */
export interface Address {
  host: string;
  port: number;
}

export function openDoor(): Promise<DoorState> {
  return call(client.POST('/x/door/open', { body: {} }));
}

export function closeDoor(): Promise<DoorState> {
  return call(client.POST('/x/door/close', { body: {} }));
}

/** Stores another address; a door that is read when it opens is moved by opening it again. */
export async function moveDoor(address: Address, isOpen: boolean): Promise<DoorState | null> {
  const body = { serverHost: address.host, serverPort: address.port };
  await call(client.PATCH('/x/settings', { body }));
  if (!isOpen) return null;
  await closeDoor();
  return openDoor();
}
