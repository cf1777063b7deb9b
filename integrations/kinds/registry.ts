import { aws } from './aws.ts';
import { basic } from './basic.ts';
import { bearer } from './bearer.ts';
import { customerioApp } from './customerio-app.ts';
import { customerioTrack } from './customerio-track.ts';
import { discord } from './discord.ts';
import { googleServiceAccount } from './google-service-account.ts';
import { hubspot } from './hubspot.ts';
import type { Kind } from './kind.ts';
import { microsoftTeams } from './microsoft-teams.ts';
import { slack } from './slack.ts';

/** A kind with a configuration of any type. `checkConfig` makes a configuration that it takes. */
export type AnyKind = Kind<unknown>;

/** Every kind of integration. */
export const KINDS = [
  ...[slack, discord, microsoftTeams, hubspot, customerioTrack, customerioApp],
  ...[bearer, basic, aws, googleServiceAccount],
] as unknown as readonly AnyKind[];

export const KIND_NAMES: readonly string[] = KINDS.map((one) => one.kind);

export const findKind = (name: string): AnyKind | undefined => KINDS.find((one) => one.kind === name);
