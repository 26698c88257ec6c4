#include "registry/etcd/etcd_wire.h"

#include "base/json.h"
#include "registry/etcd/base64.h"

namespace weft::etcd {
namespace {

std::string base64_of(std::string_view text) {
  return to_base64(std::as_bytes(std::span(text)));
}

void put_keys(JsonWriter& json, const Keys& keys) {
  json.member("key", base64_of(keys.begin));
  if (!keys.end.empty()) json.member("range_end", base64_of(keys.end));
}

void put_number(JsonWriter& json, std::string_view name, std::uint64_t number) {
  if (number != 0) json.member(name, std::to_string(number));
}

void put_range(JsonWriter& json, const RangeQuery& range) {
  json.begin_object();
  put_keys(json, range.keys);
  put_number(json, "limit", range.limit);
  put_number(json, "revision", range.revision);
  if (range.keys_only) json.member("keys_only", true);
  if (range.last_first) json.member("sort_order", "DESCEND").member("sort_target", "KEY");
  json.end_object();
}

struct PutOp {
  JsonWriter& json;
  void operator()(const RangeQuery& range) const { put_range(json.key("request_range"), range); }
  void operator()(const Put& put) const {
    json.key("request_put").begin_object();
    json.member("key", base64_of(put.key)).member("value", to_base64(put.value));
    put_number(json, "lease", put.lease);
    json.end_object();
  }
  void operator()(const Delete& gone) const {
    json.key("request_delete_range").begin_object();
    put_keys(json, gone.keys);
    json.end_object();
  }
};

void put_compare(JsonWriter& json, const Compare& compare) {
  constexpr std::string_view kRelations[] = {"EQUAL", "GREATER", "LESS"};
  constexpr std::string_view kTargets[] = {"VERSION", "MOD", "VALUE"};
  json.begin_object();
  json.member("target", kTargets[static_cast<std::size_t>(compare.target)]);
  json.member("result", kRelations[static_cast<std::size_t>(compare.relation)]);
  put_keys(json, compare.keys);
  if (compare.target == Target::value)
    json.member("value", to_base64(compare.value));
  else
    json.member(compare.target == Target::version ? "version" : "mod_revision", std::to_string(compare.number));
  json.end_object();
}

}  // namespace

Keys prefixed(std::string prefix) {
  std::string end = prefix;
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  if (!end.empty()) end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return {std::move(prefix), std::move(end)};
}

RangeQuery query_of(std::string key, bool keys_only) {
  return {{std::move(key), {}}, 0, 0, keys_only, false};
}

std::string encode(const RangeQuery& range) {
  JsonWriter json;
  put_range(json, range);
  return json.take();
}

std::string encode(const Txn& txn) {
  JsonWriter json;
  json.begin_object().key("compare").begin_array();
  for (const Compare& compare : txn.compares) put_compare(json, compare);
  json.end_array().key("success").begin_array();
  for (const Op& op : txn.then) {
    json.begin_object();
    std::visit(PutOp{json}, op);
    json.end_object();
  }
  json.end_array().end_object();
  return json.take();
}

std::string encode_watch(const Keys& keys, std::uint64_t start_revision) {
  JsonWriter json;
  json.begin_object().key("create_request").begin_object();
  put_keys(json, keys);
  put_number(json, "start_revision", start_revision);
  json.member("fragment", true);
  json.end_object().end_object();
  return json.take();
}

std::string encode_lease_grant(std::uint64_t ttl_s) {
  JsonWriter json;
  json.begin_object().member("TTL", std::to_string(ttl_s)).end_object();
  return json.take();
}

std::string encode_lease_id(std::uint64_t id) {
  JsonWriter json;
  json.begin_object().member("ID", std::to_string(id)).end_object();
  return json.take();
}

std::string encode_add_learner(std::string_view peer_url) {
  JsonWriter json;
  json.begin_object().key("peerURLs").begin_array().value(peer_url).end_array();
  return json.member("isLearner", true).end_object().take();
}

std::string encode_member_id(std::uint64_t id) {
  return encode_lease_id(id);  // both are {"ID": "…"}
}

std::string encode_login(std::string_view user, std::string_view password) {
  JsonWriter json;
  json.begin_object().member("name", user).member("password", password).end_object();
  return json.take();
}

}  // namespace weft::etcd
