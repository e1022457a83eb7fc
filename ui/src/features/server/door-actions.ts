/** What a person does with the door. */
import { call, client, type DoorState } from '$lib/api';

/** Host and port as the settings have them. */
export interface Address {
  host: string;
  port: number;
}

export function openDoor(): Promise<DoorState> {
  return call(client.POST('/x/door/open'));
}

export function closeDoor(): Promise<DoorState> {
  return call(client.POST('/x/door/close'));
}

/** An open door stays where it is; it is opened where the settings say. */
export async function reopenDoor(): Promise<DoorState> {
  await closeDoor();
  return openDoor();
}

/** Stores another address; an open door is moved there. */
export async function moveDoor(address: Address, isOpen: boolean): Promise<DoorState | null> {
  const body = { serverHost: address.host, serverPort: address.port };
  await call(client.PATCH('/x/settings', { body }));
  return isOpen ? reopenDoor() : null;
}
