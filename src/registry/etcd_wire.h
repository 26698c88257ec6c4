// etcd v3 as its JSON gateway speaks it: requests to text, answers from text. Pure.
//
// Paths are /v3/kv/range, /v3/kv/txn, /v3/watch, /v3/lease/grant, …; all are POST. Keys and values are base64, 64-bit
// numbers are decimal strings, and what is zero or empty is left out. Each message of a stream is one line,
// {"result": …} or {"error": …}. (etcd's rpc.proto; tried with etcd 3.4.23.)
// Answers are hostile: bounded before they are parsed (limits::kEtcdAnswerMax), of the types that are expected or
// refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weft/result.h"

namespace weft::etcd {

struct KeyValue {
  std::string key;
  std::vector<std::byte> value;
  std::uint64_t create_revision = 0;
  std::uint64_t mod_revision = 0;
};

// Keys from `begin` to before `end`; "" as the end: `begin` alone.
struct Keys {
  std::string begin;
  std::string end;
};
Keys prefixed(std::string prefix);  // all that begin so; not empty, and not of bytes 0xff alone

struct RangeQuery {
  Keys keys;
  std::uint64_t limit = 0;     // 0: none
  std::uint64_t revision = 0;  // 0: now
  bool keys_only = false;
  bool last_first = false;  // by key; with a limit
};
struct Put {
  std::string key;
  std::vector<std::byte> value;
  std::uint64_t lease = 0;
};
struct Delete {
  Keys keys;
};
using Op = std::variant<RangeQuery, Put, Delete>;

// Numbers are 0 of a key that is not there; no value equals its.
enum class Target : std::uint8_t { version, mod_revision, value };
enum class Relation : std::uint8_t { equal, greater, less };
// Holds when it holds for every key of the range; for a range without keys, when it holds for 0.
struct Compare {
  Keys keys;
  Target target = Target::version;
  Relation relation = Relation::equal;
  std::uint64_t number = 0;
  std::vector<std::byte> value = {};  // Target::value
};
struct Txn {
  std::vector<Compare> compares;
  std::vector<Op> then;
};

struct Header {
  std::uint64_t cluster = 0;
  std::uint64_t revision = 0;
};
struct RangeAnswer {
  Header header;
  std::vector<KeyValue> items;
  bool more = false;
};
struct TxnAnswer {
  Header header;
  bool succeeded = false;
  std::vector<RangeAnswer> ranges;  // one for each op, empty but for a RangeQuery; none when it did not succeed
};
struct LeaseAnswer {
  Header header;
  std::uint64_t id = 0;
  std::uint64_t ttl_s = 0;  // 0: there is no such lease any more
};

struct Event {
  bool deleted = false;
  KeyValue item;  // of a deleted key without a value
};
struct WatchAnswer {
  Header header;
  bool created = false;
  bool canceled = false;
  bool fragment = false;        // more of the same revision follows
  std::uint64_t compacted = 0;  // canceled, because the revision asked for is older than this
  std::string reason;           // canceled
  std::vector<Event> events;
};

std::string encode(const RangeQuery& range);
std::string encode(const Txn& txn);
std::string encode_watch(const Keys& keys, std::uint64_t start_revision);  // fragments allowed
std::string encode_lease_grant(std::uint64_t ttl_s);
std::string encode_lease_id(std::uint64_t id);
std::string encode_login(std::string_view user, std::string_view password);

// Errc::io for what is no such answer. `where` starts messages.
Result<RangeAnswer> decode_range(std::string_view text, std::string_view where);
// An answer for `ops` of the request.
Result<TxnAnswer> decode_txn(std::string_view text, std::size_t ops, std::string_view where);
Result<LeaseAnswer> decode_lease_grant(std::string_view text, std::string_view where);
Result<LeaseAnswer> decode_keep_alive(std::string_view line, std::string_view where);
Result<std::string> decode_login(std::string_view text, std::string_view where);  // the token
// A line of a watch. An {"error": …} is returned as error_of() says.
Result<WatchAnswer> decode_watch(std::string_view line, std::string_view where);

// What a failed request was answered, {"code": …, "message": …}, as an Error:
// Errc::changed       the revision asked for is compacted, or has not come yet
// Errc::unreachable   nothing was done: no leader
// Errc::timed_out     it may have been done, or may yet be
// Errc::permission    wrong user, password, or rights; see is_stale_login()
// Errc::no_space      etcd's database is full; what filled it may have been done, the next look tells
// Errc::busy          too many requests
// Errc::invalid       everything else that etcd refuses, an answer larger than it sends too
Error error_of(int http_status, std::string_view text, std::string_view where);
// A token that has expired, or is of a time before the rights changed: another login may help.
bool is_stale_login(const Error& error);
bool is_too_large(const Error& error);  // ask for less at a time

}  // namespace weft::etcd
