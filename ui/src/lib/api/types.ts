/** Names for the schemas of the control contract; everything comes from the generated file. */
import type { components } from './schema.gen';

type Schemas = components['schemas'];

export type ApiKey = Schemas['KeyInfo'];
export type ChatEvent = Schemas['ChatEvent'];
export type ChatRequest = Schemas['ChatRequest'];
export type Conversation = Schemas['Conversation'];
export type ConversationSummary = Schemas['ConversationSummary'];
export type DoorState = Schemas['DoorState'];
export type DownloadJob = Schemas['DownloadJob'];
export type Event = Schemas['Event'];
export type Fit = Schemas['Fit'];
export type HubModel = Schemas['HubModel'];
export type HubModelDetail = Schemas['HubModelDetail'];
export type LogEntry = Schemas['LogEntry'];
export type McpServer = Schemas['McpServer'];
export type McpTool = Schemas['McpTool'];
export type Message = Schemas['Message'];
export type Model = Schemas['Model'];
export type ModelDetail = Schemas['ModelDetail'];
export type ModelList = Schemas['ModelList'];
export type ModelParameters = Schemas['ModelParameters'];
export type Settings = Schemas['Settings'];
export type SettingsReply = Schemas['SettingsView'];
export type Status = Schemas['Status'];
export type Throughput = Schemas['Throughput'];
export type ToolCall = Schemas['ToolCall'];
