/** The string files of all features, in English; one file per feature, keys get its name as prefix. */
import chat from '../../features/chat/strings/en.json';
import firstRun from '../../features/first-run/strings/en.json';
import logs from '../../features/logs/strings/en.json';
import mcp from '../../features/mcp/strings/en.json';
import models from '../../features/models/strings/en.json';
import server from '../../features/server/strings/en.json';
import settings from '../../features/settings/strings/en.json';
import common from './strings/en.json';

export const english = { common, chat, models, server, mcp, settings, logs, firstRun };

type Tables = typeof english;

/** One string, or one per plural category (chosen by the parameter `count`). */
export type Text = string | { one?: string; other: string };

/** The strings of one language by feature and key. */
export type Strings = { [F in keyof Tables]: { [K in keyof Tables[F]]: Text } };

/** `feature.key` of every string there is. */
export type Key = {
  [F in keyof Tables]: `${F}.${keyof Tables[F] & string}`;
}[keyof Tables];
