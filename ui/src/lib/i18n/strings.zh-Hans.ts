/** The string files of all features in Simplified Chinese; loaded only when they are wanted. */
import chat from '../../features/chat/strings/zh-Hans.json';
import firstRun from '../../features/first-run/strings/zh-Hans.json';
import logs from '../../features/logs/strings/zh-Hans.json';
import mcp from '../../features/mcp/strings/zh-Hans.json';
import models from '../../features/models/strings/zh-Hans.json';
import server from '../../features/server/strings/zh-Hans.json';
import settings from '../../features/settings/strings/zh-Hans.json';
import type { Strings } from './strings';
import common from './strings/zh-Hans.json';

export const chinese: Strings = { common, chat, models, server, mcp, settings, logs, firstRun };
