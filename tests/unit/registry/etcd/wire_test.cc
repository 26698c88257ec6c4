#include <doctest/doctest.h>

#include <string>

#include "base/limits.h"
#include "registry/etcd/etcd_wire.h"
#include "testing.h"

using namespace weft;
using namespace weft::etcd;
using namespace weft::testing;

TEST_CASE("wire: requests are as etcd's gateway takes them") {
  CHECK(encode(RangeQuery{{"foo", ""}, 0, 0, false, false}) == R"({"key":"Zm9v"})");
  CHECK(encode(RangeQuery{prefixed("foo"), 1, 7, true, true}) ==
        R"({"key":"Zm9v","range_end":"Zm9w","limit":"1","revision":"7","keys_only":true,)"
        R"("sort_order":"DESCEND","sort_target":"KEY"})");
  Txn txn;
  txn.compares.push_back({{"foo", ""}, Target::version, Relation::greater, 0});
  txn.compares.push_back({prefixed("foo"), Target::mod_revision, Relation::less, 9});
  txn.compares.push_back({{"foo", ""}, Target::value, Relation::equal, 0, {std::byte{'b'}}});
  txn.then.emplace_back(Put{"foo", {std::byte{'b'}}, 5});
  txn.then.emplace_back(Delete{{"foo", ""}});
  CHECK(encode(txn) == R"({"compare":[{"target":"VERSION","result":"GREATER","key":"Zm9v","version":"0"},)"
                       R"({"target":"MOD","result":"LESS","key":"Zm9v","range_end":"Zm9w","mod_revision":"9"},)"
                       R"({"target":"VALUE","result":"EQUAL","key":"Zm9v","value":"Yg=="}],)"
                       R"("success":[{"request_put":{"key":"Zm9v","value":"Yg==","lease":"5"}},)"
                       R"({"request_delete_range":{"key":"Zm9v"}}]})");
  CHECK(prefixed("a\xff").end == "b");
}

TEST_CASE("wire: answers, with what is zero left out") {
  auto range = decode_range(
      R"({"header":{"cluster_id":"18446744073709551615","revision":"7"},"kvs":[{"key":"Zm9v","create_revision":"4",)"
      R"("mod_revision":"5","version":"1","value":"YmFy"},{"key":"Zm8="}],"more":true,"count":"9"})",
      "x");
  REQUIRE(range.ok());
  CHECK(range->header.revision == 7);
  CHECK(range->header.cluster == ~0ULL);
  REQUIRE(range->items.size() == 2);
  CHECK(range->items[0].key == "foo");
  CHECK(as_text(range->items[0].value) == "bar");
  CHECK(range->items[0].mod_revision == 5);
  CHECK(range->items[1].value.empty());
  CHECK(range->more);

  auto lost = decode_txn(R"({"header":{"revision":"3"}})", 2, "x");
  REQUIRE(lost.ok());
  CHECK_FALSE(lost->succeeded);
  auto won = decode_txn(R"({"header":{"revision":"3"},"succeeded":true,"responses":[{"response_put":{}},)"
                        R"({"response_range":{"kvs":[{"key":"Zm9v"}]}}]})",
                        2, "x");
  REQUIRE(won.ok());
  REQUIRE(won->ranges.size() == 2);
  CHECK(won->ranges[1].items[0].key == "foo");

  auto watch = decode_watch(R"({"result":{"header":{"revision":"8"},"fragment":true,"events":[{"kv":{"key":"Zm9v"}},)"
                            R"({"type":"DELETE","kv":{"key":"Zm9v","mod_revision":"8"}}]}})",
                            "x");
  REQUIRE(watch.ok());
  CHECK(watch->fragment);
  REQUIRE(watch->events.size() == 2);
  CHECK_FALSE(watch->events[0].deleted);
  CHECK(watch->events[1].deleted);
  auto compacted = decode_watch(R"({"result":{"header":{},"canceled":true,"compact_revision":"3"}})", "x");
  REQUIRE(compacted.ok());
  CHECK(compacted->compacted == 3);
}

TEST_CASE("wire: malformed answers are refused") {
  const std::string header = R"({"header":{"revision":"7"},)";
  for (const std::string& bad :
       {std::string(), std::string("{"), std::string("[]"), std::string("7"), std::string("{}"),
        std::string(R"({"header":7})"), std::string(R"({"header":{"revision":"-7"}})"),
        std::string(R"({"header":{"revision":7.5}})"), std::string(R"({"header":{"revision":"99999999999999999999"}})"),
        header + R"("kvs":{}})", header + R"("kvs":[7]})", header + R"("kvs":[{"key":"Zm9"}]})",
        header + R"("kvs":[{"key":""}]})", header + R"("kvs":[{"key":"Zm9v","value":"\u0000"}]})",
        header + R"("kvs":[{"key":"Zm9v","value":7}]})", header + R"("more":"yes"})", header + R"("more":true}x)"}) {
    CAPTURE(bad);
    auto range = decode_range(bad, "x");
    CHECK_FALSE(range.ok());
    if (!range.ok()) CHECK(range.error().code == Errc::io);
  }
  CHECK_FALSE(decode_txn(header + R"("succeeded":true,"responses":[{}]})", 2, "x").ok());
  CHECK_FALSE(decode_txn(header + R"("succeeded":true,"responses":[{"response_range":[]}]})", 1, "x").ok());
  CHECK_FALSE(decode_watch(header + R"("events":[]})", "x").ok());
  CHECK_FALSE(decode_watch(R"({"result":{"header":{},"events":[{"type":"X","kv":{"key":"Zm9v"}}]}})", "x").ok());
  CHECK_FALSE(decode_watch(R"({"result":{"header":{},"events":[{"type":"PUT"}]}})", "x").ok());
  CHECK_FALSE(decode_login(R"({"token":"a\r\nX-Evil: 1"})", "x").ok());
  CHECK_FALSE(decode_login(R"({"token":")" + std::string(limits::kEtcdTokenMax + 1, 'a') + R"("})", "x").ok());
  CHECK_FALSE(decode_lease_grant(header + R"("TTL":"5"})", "x").ok());
  CHECK_FALSE(decode_range(std::string(1000, '['), "x").ok());
}

TEST_CASE("wire: what etcd refuses is told apart by what helps") {
  auto code = [](int grpc, const std::string& message) {
    return error_of(400, R"({"error":"x","message":")" + message + R"(","code":)" + std::to_string(grpc) + "}", "w")
        .code;
  };
  CHECK(code(11, "etcdserver: mvcc: required revision has been compacted") == Errc::changed);
  CHECK(code(11, "etcdserver: mvcc: required revision is a future revision") == Errc::changed);
  CHECK(code(14, "etcdserver: request timed out") == Errc::timed_out);
  CHECK(code(14, "etcdserver: no leader") == Errc::unreachable);
  // Also returned for a proposed change, which may still be applied.
  for (const char* unsure : {"etcdserver: server stopped", "etcdserver: leader changed", "transport is closing",
                             "etcdserver: request timed out, possibly due to connection lost", "what comes later"})
    CHECK(code(14, unsure) == Errc::timed_out);
  for (int grpc : {1, 2, 4, 10, 13, 15}) CHECK(code(grpc, "etcdserver: request cancelled") == Errc::timed_out);
  CHECK(error_of(408, "", "w").code == Errc::timed_out);
  CHECK(code(3, "etcdserver: duplicate key given in txn request") == Errc::invalid);
  CHECK(code(3, "etcdserver: authentication failed, invalid user ID or password") == Errc::permission);
  CHECK(code(3, "etcdserver: user name is empty") == Errc::permission);
  CHECK(code(7, "etcdserver: permission denied") == Errc::permission);
  CHECK(code(8, "etcdserver: mvcc: database space exceeded") == Errc::no_space);
  CHECK(code(8, "etcdserver: too many requests") == Errc::busy);
  CHECK(is_too_large(Error{Errc::invalid, "grpc: received message larger than max (5 vs. 4)"}));
  CHECK(is_stale_login(Error{code(16, "etcdserver: invalid auth token"), "w: etcdserver: invalid auth token"}));
  CHECK(error_of(502, "<html>", "w").message == "w: HTTP status 502, and no reason");
  CHECK(error_of(502, "<html>", "w").code == Errc::timed_out);
  CHECK(error_of(0, R"({"error":{"grpc_code":14,"http_code":503,"message":"etcdserver: no leader"}})", "w").code ==
        Errc::unreachable);
}

TEST_CASE("members of etcd, one of which has not started and one of which has no vote") {
  const auto all = decode_members(
      R"({"header":{"revision":"7"},"members":[{"ID":"10501334649042878790","name":"n1","peerURLs":["https://a:2380"],)"
      R"("clientURLs":["https://a:2379"]},{"ID":"2","peerURLs":["https://b:2380"],"isLearner":true}]})",
      "here");
  REQUIRE(all.ok());
  REQUIRE(all->size() == 2);
  CHECK((*all)[0].id == 10501334649042878790ULL);
  CHECK((*all)[0].client_urls == std::vector<std::string>{"https://a:2379"});
  CHECK_FALSE((*all)[0].is_learner);
  CHECK((*all)[1].name.empty());
  CHECK((*all)[1].is_learner);
  CHECK(encode_add_learner("https://c:1") == R"({"peerURLs":["https://c:1"],"isLearner":true})");
  for (const char* const bad : {"", "[]", R"({"members":{}})", R"({"members":[1]})", R"({"members":[{"ID":"1"}]})",
                                R"({"members":[{"ID":"1","peerURLs":[1]}]})", R"({"members":[{"peerURLs":["x"]}]})"})
    CHECK_FALSE(decode_members(bad, "here").ok());
}
