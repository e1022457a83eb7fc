import { describe, expect, it } from 'vitest';
import { isHost, isLoopback, nextPort, parsePort, reachOf, splitAddress } from './address';

it.each([
  ['1', 1],
  [' 8000 ', 8000],
  ['65535', 65_535],
  ['0', null],
  ['65536', null],
  ['', null],
  ['80.5', null],
  ['-1', null],
  ['8,000', null],
  ['1e3', null],
])('reads the port %j as %j', (text, port) => {
  expect(parsePort(text)).toBe(port);
});

it('offers a port that exists', () => {
  expect(nextPort(8000)).toBe(8001);
  expect(nextPort(65_535)).toBe(1024);
});

describe('hosts', () => {
  it.each(['127.0.0.1', '127.9.9.9', 'localhost', 'LOCALHOST', '::1', '[::1]'])(
    '%s stays on this computer',
    (host) => expect(isLoopback(host)).toBe(true),
  );
  it.each(['0.0.0.0', '::', '192.168.1.4', 'studio.local', '127.0.0.1.example.com'])(
    '%s can be reached from others',
    (host) => expect(isLoopback(host)).toBe(false),
  );
  it('have a reach', () => {
    expect(reachOf('127.0.0.1')).toBe('local');
    expect(reachOf('localhost')).toBe('local');
    expect(reachOf('0.0.0.0')).toBe('network');
    expect(reachOf('192.168.1.4')).toBe('custom');
  });
  it.each(['192.168.1.4', 'studio.local', 'a', '::1', '[::]', 'fe80::1'])('%s can be one', (host) =>
    expect(isHost(host)).toBe(true),
  );
  it.each(['', ' ', 'http://a', 'a:8000', 'a/b', 'a b', '-a', '[::1', '::1]'])(
    '%j cannot be one',
    (host) => expect(isHost(host)).toBe(false),
  );
});

it.each([
  ['127.0.0.1:8000', { host: '127.0.0.1', port: 8000 }],
  ['[::1]:8000', { host: '[::1]', port: 8000 }],
  ['studio.local:80', { host: 'studio.local', port: 80 }],
  ['127.0.0.1', null],
  ['::1:8000', null],
  ['a:0', null],
])('splits %j', (address, parts) => {
  expect(splitAddress(address)).toEqual(parts);
});
