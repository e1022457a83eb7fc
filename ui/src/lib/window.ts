/** What the desktop window draws over the page. */
import { isDesktop } from './api';
import { isMac } from './shortcut';

/** The page reaches under the title bar, whose buttons lie over its top left corner. */
export const hasTrafficLights = isDesktop && isMac;
