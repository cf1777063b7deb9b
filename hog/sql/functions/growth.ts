/**
 * The functions and aggregates whose results can be much larger than their arguments. Each is printed with the most
 * bytes that its result may have, and refuses to build more. A conversion of a list to a text is bounded too.
 */
export const BOUNDED: ReadonlySet<string> = new Set(
  `leftPad lpad rightPad rpad leftPadUTF8 rightPadUTF8 repeat space replace replaceAll replaceRegexpAll replaceRegexpOne
  arrayStringConcat splitByChar splitByString splitByWhitespace splitByNonAlpha splitByRegexp tokens alphaTokens
  extractAll base64Encode translate translateUTF8 normalizeUTF8NFC hex toJSONString extractURLParameters
  extractURLParameterNames encodeURLComponent decodeURLComponent encodeURLFormComponent decodeURLFormComponent range
  JSONExtractArrayRaw JSONExtractKeys
  JSONExtractKeysAndValues JSONExtractKeysAndValuesRaw mapKeys mapValues mapFromArrays arrayMap arrayEnumerate arrayEnumerateUniq arrayEnumerateDense arrayCumSum
  arrayCumSumNonNegative arrayDifference extractGroups tryDecodeURLComponent arrayZip arrayZipUnaligned groupArray array_agg groupUniqArray topK string_agg json_agg`.split(
    /\s+/,
  ),
);

/**
 * The functions and aggregates whose results are at most about as large as their arguments together, or have a fixed
 * size. A new function is listed here or above; a test fails until it is.
 */
export const UNBOUNDED: ReadonlySet<string> = new Set(
  `if multiIf and or not xor equals notEquals less lessOrEquals greater greaterOrEquals like ilike notLike notILike
  in notIn exists coalesce ifNull nullIf isNull isNotNull assumeNotNull toNullable materialize least greatest min2
  max2 transform tuple identity toBool toInt toInt8 toUInt8 toInt16 toUInt16 toInt32 toUInt32 toInt64 toUInt64
  toInt128 toUInt128 toInt256 toUInt256 toIntOrNull toInt8OrNull toUInt8OrNull toInt16OrNull toUInt16OrNull
  toInt32OrNull toUInt32OrNull toInt64OrNull toUInt64OrNull toInt128OrNull toUInt128OrNull toInt256OrNull
  toUInt256OrNull toIntOrZero toInt8OrZero toUInt8OrZero toInt16OrZero toUInt16OrZero toInt32OrZero toUInt32OrZero
  toInt64OrZero toUInt64OrZero toInt128OrZero toUInt128OrZero toInt256OrZero toUInt256OrZero toIntOrDefault
  toInt8OrDefault toUInt8OrDefault toInt16OrDefault toUInt16OrDefault toInt32OrDefault toUInt32OrDefault
  toInt64OrDefault toUInt64OrDefault toInt128OrDefault toUInt128OrDefault toInt256OrDefault toUInt256OrDefault
  toFloat toFloat32 toFloat64 toFloatOrNull toFloat32OrNull toFloat64OrNull toFloatOrZero toFloat32OrZero
  toFloat64OrZero toFloatOrDefault toFloat32OrDefault toFloat64OrDefault toDecimal toString toUUID toUUIDOrNull
  toDate to_date toDateOrNull toDateTime toDateTime64 toDateTimeUS toDateTimeOrNull parseDateTimeBestEffort
  parseDateTimeBestEffortOrNull parseDateTime64BestEffort parseDateTime64BestEffortOrNull parseDateTime toTypeName
  CAST accurateCastOrNull unhex cityHash64 UUIDv7ToDateTime toModifiedJulianDay match extract extractRegex
  countMatches countMatchesCaseInsensitive multiMatchAny multiMatchAnyIndex length lengthUTF8 char_length octet_length empty
  notEmpty lower lowerUTF8 upper upperUTF8 reverse reverseUTF8 concat concatWithSeparator substring substringUTF8
  substr left right initcap initcapUTF8 trim trimBoth btrim trimLeft ltrim trimRight rtrim startsWith
  startsWithUTF8 endsWith endsWithUTF8 position positionUTF8 strpos positionCaseInsensitive
  positionCaseInsensitiveUTF8 locate replaceOne countSubstrings countSubstringsCaseInsensitive split_part
  multiSearchAny multiSearchAnyCaseInsensitive multiSearchAnyUTF8 multiSearchAnyCaseInsensitiveUTF8
  multiSearchFirstPosition multiSearchFirstIndex base64Decode tryBase64Decode ascii format md5Hex sha256Hex
  protocol domain domainRFC domainWithoutWWW domainWithoutWWWRFC cutWWW topLevelDomain topLevelDomainRFC port path
  pathFull queryString fragment queryStringAndFragment extractURLParameter cutQueryString cutFragment
  cutQueryStringAndFragment JSONExtractString JSONExtractInt JSONExtractUInt JSONExtractFloat JSONExtractBool
  JSONExtractRaw JSONExtract   JSONHas JSONLength JSONArrayLength JSONType isValidJSON JSON_VALUE addMicroseconds
  addMilliseconds addSeconds addMinutes addHours addDays addWeeks addMonths addQuarters addYears
  subtractMicroseconds subtractMilliseconds subtractSeconds subtractMinutes subtractHours subtractDays
  subtractWeeks subtractMonths subtractQuarters subtractYears toIntervalMicrosecond toIntervalMillisecond
  toIntervalSecond toIntervalMinute toIntervalHour toIntervalDay toIntervalWeek toIntervalMonth toIntervalQuarter
  toIntervalYear dateAdd date_add timestampAdd dateSub date_subtract date_sub timestampSub dateDiff date_diff age
  now now64 today yesterday toYear toQuarter toMonth toDayOfMonth toDayOfYear toDayOfWeek toHour toMinute toSecond
  toISOWeek toISOYear toWeek toYYYYMM toYYYYMMDD toYYYYMMDDhhmmss toStartOfYear toStartOfQuarter toStartOfMonth
  toStartOfISOYear toMonday toStartOfWeek toLastDayOfWeek toStartOfDay toStartOfHour toStartOfMinute toStartOfSecond
  toStartOfFiveMinutes toStartOfFiveMinute toStartOfTenMinutes toStartOfFifteenMinutes toStartOfInterval date_bin
  toLastDayOfMonth dateTrunc date_trunc formatDateTime to_char dateName monthName toUnixTimestamp
  toUnixTimestamp64Milli fromUnixTimestamp fromUnixTimestamp64Milli to_timestamp toTimeZone toTimezone timezone
  timezoneOf timeZoneOf timezoneOffset timeZoneOffset
  make_date makeDate make_timestamp plus minus multiply divide modulo mod intDiv intDivOrZero positiveModulo
  negate abs round roundBankers floor ceil ceiling trunc truncate exp log ln log2 log10 log1p sqrt cbrt pow power
  sign pi e sin cos tan asin acos atan atan2 sinh cosh tanh degrees radians gcd lcm factorial bitAnd bitOr bitXor
  bitNot bitShiftLeft bitShiftRight isNaN isFinite isInfinite arraySort arrayReverseSort arrayFilter arrayExists
  arrayAll arrayCount arrayFirst arrayLast arrayFirstIndex arraySum arrayAvg arrayMin arrayMax array
  emptyArrayString emptyArrayInt64 arrayElement has hasAll hasAny indexOf countEqual arrayConcat arrayPushBack
  arrayPushFront arrayPopBack arrayPopFront arraySlice arrayDistinct arrayUniq arrayReverse arrayFlatten
  arrayCompact arrayJoin tupleElement map mapContains sortableSemver count countDistinct sum avg
  min max uniq uniqExact uniqHLL12 uniqCombined any any_value anyLast anyHeavy first_value last_value argMin
  argMax quantile quantileExact quantileTDigest quantiles median stddevPop stddevSamp stddev_pop stddev_samp
  varPop varSamp var_pop var_samp covarPop covarSamp corr every bool_and bool_or row_number rank dense_rank
  percent_rank cume_dist ntile nth_value lag lead lagInFrame leadInFrame
  arrayReduce arrayIntersect arrayRotateLeft arrayRotateRight arrayLastIndex mapUpdate make_timestamptz make_interval
  current_timestamp current_date tumble tumbleStart tumbleEnd hop hopStart hopEnd date_part timeSlot toYearWeek
  timeStampAdd timeStampSub toNullableString _toInt8 _toInt16 _toInt32 _toInt64 _toUInt64 _toUInt128 _toDate
  fromModifiedJulianDay moduloOrZero exp2 exp10 asinh acosh atanh hypot width_bucket bitTest bitCount
  bitHammingDistance ifNotFinite multiSearchFirstPositionUTF8 multiSearchFirstPositionCaseInsensitive
  multiSearchFirstPositionCaseInsensitiveUTF8 multiSearchFirstIndexUTF8 multiSearchFirstIndexCaseInsensitive
  multiSearchFirstIndexCaseInsensitiveUTF8 multiSearchAllPositions multiSearchAllPositionsUTF8
  multiSearchAllPositionsCaseInsensitive multiSearchAllPositionsCaseInsensitiveUTF8 hasToken hasTokenCaseInsensitive
  md5 appendTrailingCharIfAbsent formatReadableSize formatReadableDecimalSize formatReadableQuantity
  formatReadableTimeDelta regexpExtract isEmpty isNotEmpty countSubstringsCaseInsensitiveUTF8 percentile_cont
  percentile_disc avgWeighted simpleLinearRegression groupBitAnd groupBitOr groupBitXor medianExact medianTDigest
  uniqTheta`.split(/\s+/),
);
