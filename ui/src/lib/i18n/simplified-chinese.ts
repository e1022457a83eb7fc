/** The string files of all features in Simplified Chinese; loaded only when they are wanted. */
import { byFeature, type Text } from './strings';

export const chinese = byFeature(
  import.meta.glob<Record<string, Text>>(
    ['./strings/zh-Hans.json', '../../features/*/strings/zh-Hans.json'],
    { eager: true, import: 'default' },
  ),
);
