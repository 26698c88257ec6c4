// The protocol of etcd v3's JSON gateway: encodes requests and decodes answers. Pure.
//
// Paths are /v3/kv/range, /v3/kv/txn, /v3/watch, /v3/lease/grant, …; all are POST. Keys and values are base64, 64-bit
// numbers are decimal strings, and zero or empty members are omitted. A message of a stream is one line, {"result": …}
// or {"error": …}. (etcd's rpc.proto; tried with etcd 3.4.23.)
//
// Answers may be hostile: their size is bounded before they are parsed (limits::kEtcdAnswerMax), and members of an
// unexpected type are refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weft/result.h"

namespace weft::etcd {

struct KeyValue {
  std::string key;
  std::vector<std::byte> value;
  std::uint64_t mod_revision = 0;     // of the latest put
  std::uint64_t create_revision = 0;  // of the first put since the key did not exist
};

// The keys from `begin` to before `end`; only the key `begin` if `end` is empty.
struct Keys {
  std::string begin;
  std::string end;
};
Keys prefixed(std::string prefix);  // all keys with this prefix, which must have a byte other than 0xff

struct RangeQuery {
  Keys keys;
  std::uint64_t limit = 0;     // 0: no limit
  std::uint64_t revision = 0;  // 0: the current one
  bool keys_only = false;
  bool last_first = false;  // descending by key; for use with a limit
};
RangeQuery query_of(std::string key, bool keys_only = false);  // of one key, now
struct Put {
  std::string key;
  std::vector<std::byte> value;
  std::uint64_t lease = 0;
};
struct Delete {
  Keys keys;
};
using Op = std::variant<RangeQuery, Put, Delete>;

// A missing key has version and mod_revision 0, and equals no value.
enum class Target : std::uint8_t { version, mod_revision, value };
enum class Relation : std::uint8_t { equal, greater, less };
// True if every key of the range satisfies it. A range without keys is compared as one missing key.
struct Compare {
  Keys keys;
  Target target = Target::version;
  Relation relation = Relation::equal;
  std::uint64_t number = 0;
  std::vector<std::byte> value = {};  // for Target::value
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
  std::vector<RangeAnswer> ranges;  // one per op, empty except for a RangeQuery; none if the compares failed
};
struct LeaseAnswer {
  Header header;
  std::uint64_t id = 0;
  std::uint64_t ttl_s = 0;  // 0: the lease does not exist
};

// A member of etcd itself.
struct EtcdMember {
  std::uint64_t id = 0;
  std::string name;                      // "": it has not started yet
  std::vector<std::string> peer_urls;    // at least one
  std::vector<std::string> client_urls;  // none before it has started
  bool is_learner = false;               // it has no vote yet
};

struct Event {
  bool deleted = false;
  KeyValue item;  // without a value if the key was deleted
};
struct WatchAnswer {
  Header header;
  bool created = false;
  bool canceled = false;
  bool fragment = false;        // more events of the same revision follow
  std::uint64_t compacted = 0;  // not 0: canceled, because the requested revision is older than this
  std::string reason;           // why it was canceled
  std::vector<Event> events;
};

std::string encode(const RangeQuery& range);
std::string encode(const Txn& txn);
std::string encode_watch(const Keys& keys, std::uint64_t start_revision);  // requests fragments
std::string encode_lease_grant(std::uint64_t ttl_s);
std::string encode_lease_id(std::uint64_t id);
std::string encode_add_learner(std::string_view peer_url);
std::string encode_member_id(std::uint64_t id);
std::string encode_login(std::string_view user, std::string_view password);

// Errc::io if the text is no such answer. `where` starts error messages.
Result<RangeAnswer> decode_range(std::string_view text, std::string_view where);
// `ops` is the number of operations in the request.
Result<TxnAnswer> decode_txn(std::string_view text, std::size_t ops, std::string_view where);
Result<LeaseAnswer> decode_lease_grant(std::string_view text, std::string_view where);
// Returns all members, out of the answer to a list of them or to a change.
Result<std::vector<EtcdMember>> decode_members(std::string_view text, std::string_view where);
Result<LeaseAnswer> decode_keep_alive(std::string_view line, std::string_view where);
Result<std::string> decode_login(std::string_view text, std::string_view where);  // returns the token
// Decodes a line of a watch. An {"error": …} becomes an error as in error_of().
Result<WatchAnswer> decode_watch(std::string_view line, std::string_view where);

// Converts the answer to a failed request, {"code": …, "message": …}, to an Error:
// Errc::changed       the requested revision is compacted, or in the future
// Errc::unreachable   the request was not executed: no leader
// Errc::timed_out     the request may have been executed, or may still be
// Errc::permission    wrong user, password, or rights; see is_stale_login()
// Errc::no_space      etcd's database is full; the change that filled it may have been made, the next read shows
// Errc::busy          too many requests
// Errc::invalid       all other refusals, also of an answer that is too large to send
Error error_of(int http_status, std::string_view text, std::string_view where);
// True if the token has expired, or is older than a change of the rights: a new login may help.
bool is_stale_login(const Error& error);
bool is_too_large(const Error& error);  // retry with a smaller limit

}  // namespace weft::etcd
