import { describe, expect, it } from 'vitest';
import { isFound, sent, settingList, stored, valueOf, type SettingKey } from './setting-list';

function parse(key: SettingKey, text: string) {
  const control = settingList.find((setting) => setting.key === key)?.control;
  if (control?.kind !== 'text') throw new Error(`${key} is not typed`);
  return control.parse(text);
}

describe('what people type', () => {
  it.each<[SettingKey, string, unknown]>([
    ['serverPort', '8123', 8123],
    ['serverPort', '', null],
    ['serverHost', ' 0.0.0.0 ', '0.0.0.0'],
    ['hfEndpoint', 'https://hf-mirror.com/', 'https://hf-mirror.com'],
    ['hfEndpoint', 'http://localhost:9000/hub', 'http://localhost:9000/hub'],
    ['allowedHosts', ' mini.example.org  *.lan ', 'mini.example.org, *.lan'],
    ['allowedOrigins', 'https://a.example,\nnull', 'https://a.example, null'],
    ['allowedOrigins', ' ', null],
    ['modelDirectory', '/Volumes/SSD/models', '/Volumes/SSD/models'],
    ['modelDirectory', '~/models', '~/models'],
    ['maxBatchSize', '1', 1],
    ['maxWaitingRequests', '0', 0],
    ['kvQuantizationStart', '0', 0],
    ['dequantizeBudgetGB', '0', 0],
    ['dequantizeBudgetGB', '2,5', 2.5],
    ['maxResidentMemoryGB', '12.5', 12.5],
    ['maxResidentMemoryGB', ' ', null],
    ['logRetentionDays', '30', 30],
  ])('%s: %j is %j', (key, text, value) => {
    expect(parse(key, text)).toEqual({ value });
  });

  it.each<[SettingKey, string, string]>([
    ['serverPort', '70000', 'port'],
    ['serverHost', 'http://x', 'host'],
    ['hfEndpoint', 'hf-mirror.com', 'url'],
    ['hfEndpoint', 'https://', 'url'],
    ['hfEndpoint', 'https://a b', 'url'],
    ['modelDirectory', 'models', 'path'],
    ['maxBatchSize', '0', 'fromOne'],
    ['maxBatchSize', '1.5', 'fromOne'],
    ['maxBatchSize', '-1', 'fromOne'],
    ['maxBatchSize', '1e3', 'fromOne'],
    ['logRetentionDays', '-1', 'fromZero'],
    ['logRetentionDays', '1000001', 'fromZero'],
    ['maxResidentMemoryGB', '0', 'decimal'],
    ['maxResidentMemoryGB', 'much', 'decimal'],
  ])('%s: %j is refused (%s)', (key, text, reason) => {
    expect(parse(key, text)).toEqual({ error: `settings.wrong.${reason}` });
  });
});

it('reads values of a document, and none from what it does not know', () => {
  const document = { serverPort: 8000, autoStartServer: false, kvBits: null, theme: { a: 1 } };
  expect(valueOf(document, 'serverPort')).toBe(8000);
  expect(valueOf(document, 'autoStartServer')).toBe(false);
  expect(valueOf(document, 'kvBits')).toBeNull();
  expect(valueOf(document, 'theme')).toBeNull();
  expect(valueOf(document, 'language')).toBeNull();
});

it('shows a list as a text and sends the text as a list', () => {
  expect(valueOf({ allowedHosts: ['a.example', '*.b'] }, 'allowedHosts')).toBe('a.example, *.b');
  expect(valueOf({ allowedHosts: [] }, 'allowedHosts')).toBeNull();
  expect(sent('allowedHosts', 'a.example, *.b')).toEqual(['a.example', '*.b']);
  expect(sent('allowedHosts', null)).toBeNull();
  expect(sent('serverHost', 'a, b')).toBe('a, b');
});

it('stores no defaults', () => {
  expect(stored(8000, 8000)).toBeNull();
  expect(stored(8001, 8000)).toBe(8001);
  expect(stored(false, true)).toBe(false);
});

it('finds a row by all words of a search, whatever their case', () => {
  const texts = ['Port', 'Where clients connect', 'serverPort'];
  expect(isFound('', texts)).toBe(true);
  expect(isFound('port CLIENTS', texts)).toBe(true);
  expect(isFound('port theme', texts)).toBe(false);
});
