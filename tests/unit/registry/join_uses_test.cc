// The uses of a join token in a real etcd.
#include "registry/join_uses.h"

#include <doctest/doctest.h>

#include <string>
#include <thread>

#include "fakes/etcd_process.h"
#include "testing.h"

namespace weft::testing {

using namespace std::chrono_literals;

TEST_CASE("a token has as many uses as it says, and its record goes once it is not needed") {
  EtcdProcess etcd;
  EtcdOptions options;
  options.endpoints = {etcd.endpoint()};
  etcd::Client client(options);
  const RegistryKeys keys("/weft", "main");
  const std::string id(32, 'a'), other(32, 'b');
  CHECK(must(count_join(client, keys, id, 2, 1h)));
  CHECK(must(count_join(client, keys, id, 2, 1h)));
  CHECK(!must(count_join(client, keys, id, 2, 1h)));
  CHECK(must(count_join(client, keys, other, 1, 1s)));
  CHECK(!must(count_join(client, keys, other, 1, 1s)));
  const auto has = [&](const std::string& token) {
    return !must(client.range(etcd::query_of(keys.join(token)))).items.empty();
  };
  CHECK(has(other));
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (has(other) && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(50ms);
  CHECK(!has(other));
  CHECK(has(id));
}

}  // namespace weft::testing
