import type { SiteFunctionRow } from '../../functions/rows/site.ts';

/** The id under which older clients load the script. They hand themselves over in a variable with this id. */
export const LOADED_BY_OLDER = 'sluice-site-functions';

/** JSON that is also JavaScript, within a script element too. */
const literal = (value: unknown) =>
  JSON.stringify(value)
    .replaceAll('<', '\\u003c')
    .replaceAll('\u2028', '\\u2028')
    .replaceAll('\u2029', '\\u2029');

/**
 * Runs the functions for a client that only loads scripts. It has no queue of its own: the functions see what is
 * captured from now on.
 */
const FOR_OLDER = `var client=window[${literal(`__$$ph_site_app_${LOADED_BY_OLDER}`)}];
if(client&&typeof client.on==='function')siteApps.forEach(function(app){
try{
var loaded=false,broken=false,waiting=[],running=app.init({posthog:client,callback:function(ok){
loaded=true;broken=!ok;waiting.forEach(give);waiting=[];
}});
client.on('eventCaptured',function(captured){
if(!captured||broken)return;
var properties=Object.assign({},captured.properties),groups={};
if(captured.$set)properties.$set=Object.assign({},properties.$set,captured.$set);
if(captured.$set_once)properties.$set_once=Object.assign({},properties.$set_once,captured.$set_once);
var ids=client.get_property('$groups')||{},known=client.get_property('$stored_group_properties')||{};
Object.keys(known).forEach(function(type){groups[type]={id:ids[type],type:type,properties:known[type]};});
var event=Object.assign({},captured,{properties:properties,elements_chain:properties.$elements_chain||'',distinct_id:properties.distinct_id});
delete event.$set;delete event.$set_once;
var globals={event:event,person:{properties:client.get_property('$stored_person_properties')},groups:groups};
if(loaded)give(globals);else if(waiting.length<1000)waiting.push(globals);
});
}catch(error){failed(error);}
function give(globals){try{if(!broken&&running&&running.processEvent)running.processEvent(globals);}catch(error){failed(error);}}
function failed(error){console.error('[Sluice] The function '+app.id+' failed.',error);}
});`;

/**
 * The settings of a project and its functions as a script. Clients run the functions one by one, and go on when one of
 * them throws.
 */
export function siteScript(config: { token: string }, functions: readonly SiteFunctionRow[]): string {
  const apps = functions.map(
    ({ id, type, transpiled }) =>
      `{id:${literal(id)},type:${literal(type)},init:function(config){return(${transpiled}\n)().init(config)}}`,
  );
  return (
    '(function(){\nvar all=window._POSTHOG_REMOTE_CONFIG=window._POSTHOG_REMOTE_CONFIG||{};\n' +
    `var siteApps=[${apps.join(',\n')}];\n` +
    `all[${literal(config.token)}]={config:${literal(config)},siteApps:siteApps};\n` +
    `${apps.length > 0 ? `${FOR_OLDER}\n` : ''}})();`
  );
}
