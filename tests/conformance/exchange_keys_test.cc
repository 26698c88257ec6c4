// A change of the cluster's key, as weft/cluster/exchange.h has it: two keys are accepted, and sessions outlive a
// reload.
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "exchange_support.h"

namespace weft {
namespace {

using namespace conformance;

// Puts a key of 32 times this letter beside the key of a node.
void put_beside(const KeyFile& key, const std::string& suffix, char letter) {
  testing::write_file(key.path() + suffix, std::string(32, letter));
  REQUIRE(::chmod((key.path() + suffix).c_str(), 0600) == 0);
}

// Proves the key of KEY.next from now on, and accepts the old one.
void use_next(const KeyFile& key) {
  std::filesystem::create_hard_link(key.path(), key.path() + ".previous");
  std::filesystem::rename(key.path() + ".next", key.path());
}

void forget(const KeyFile& key) {
  std::filesystem::remove(key.path() + ".previous");
}

void forget_next(const KeyFile& key) {
  std::filesystem::remove(key.path() + ".next");
}

TEST_CASE("nodes change their key one after the other, and every call is answered meanwhile") {
  in_every_world_at_once([](TransportWorld& world) {
    const KeyFile keys[2];
    ScriptedServer server;
    auto a = open_node(world, keys[0], "a", &server);
    auto b = open_node(world, keys[1], "b", &server);
    const auto both_ways = [&] {
      CHECK(ask(*a, at(*b, "b"), "echo x").ok());
      CHECK(ask(*b, at(*a, "a"), "echo x").ok());
    };
    both_ways();
    const std::string old_name = a->key_names().front();
    std::atomic<bool> over{false};
    std::atomic<int> failures{0};
    std::thread reader([&] {
      while (!over)
        if (!ask(*a, at(*b, "b"), "echo x").ok()) ++failures;
    });
    const auto step = [&](const std::function<void(const KeyFile&)>& change) {
      for (const KeyFile& key : keys) {
        change(key);
        CHECK((&key == &keys[0] ? a : b)->reload_keys().ok());
        both_ways();
      }
    };
    step([](const KeyFile& key) { put_beside(key, ".next", 'n'); });
    CHECK(a->key_names().size() == 2);
    CHECK(a->key_names().front() == old_name);
    step(use_next);
    CHECK(a->key_names().back() == old_name);
    CHECK(a->figures().handshakes + b->figures().handshakes == 4);  // both ends of both sessions: none was made again
    step(forget);
    over = true;
    reader.join();
    CHECK(failures == 0);
    CHECK(a->key_names() == b->key_names());
    CHECK(a->key_names().size() == 1);
    CHECK(a->key_names().front() != old_name);
    CHECK(a->figures().handshakes + b->figures().handshakes > 4);  // those of the forgotten key have ended
  });
}

TEST_CASE("a node that missed a change is answered, and answers, while the others accept its key") {
  in_every_world_at_once([](TransportWorld& world) {
    const KeyFile changed('n');
    const KeyFile missed('o');
    put_beside(changed, ".previous", 'o');
    ScriptedServer server;
    auto a = open_node(world, changed, "a", &server);
    auto b = open_node(world, missed, "b", &server);
    CHECK(ask(*b, at(*a, "a"), "echo x").ok());
    CHECK(ask(*a, at(*b, "b"), "echo x").ok());
    CHECK(a->accepts_proof("b", b->key_proof("b")));
    CHECK(b->accepts_proof("a", a->key_proof("a")));
    CHECK(!b->accepts_proof("b", a->key_proof("a")));
    CHECK(!b->accepts_proof("b", ""));
    const std::string now = a->key_names().front();
    const std::string before = b->key_names().front();
    CHECK(a->shows_key("a", a->key_proof("a"), now));
    CHECK(a->shows_key("a", a->key_proof("a"), before));
    CHECK(!a->shows_key("b", b->key_proof("b"), now));
    CHECK(a->shows_key("b", b->key_proof("b"), before));
    forget(changed);
    REQUIRE(a->reload_keys().ok());
    CHECK(!a->accepts_proof("b", b->key_proof("b")));
    CHECK(!b->accepts_proof("a", a->key_proof("a")));
    CHECK(ask(*b, at(*a, "a"), "echo x").error().code == Errc::permission);
    CHECK(ask(*a, at(*b, "b"), "echo x").error().code == Errc::permission);
  });
}

TEST_CASE("keys that cannot be read change nothing") {
  in_every_world_at_once([](TransportWorld& world) {
    const KeyFile keys[2];
    ScriptedServer server;
    auto a = open_node(world, keys[0], "a", nullptr);
    auto b = open_node(world, keys[1], "b", &server);
    REQUIRE(ask(*a, at(*b, "b"), "echo x").ok());
    const auto names = a->key_names();
    put_beside(keys[0], ".next", 'n');
    REQUIRE(::chmod((keys[0].path() + ".next").c_str(), 0644) == 0);
    CHECK(a->reload_keys().error().code == Errc::permission);
    CHECK(!check_cluster_key(keys[0].path()).ok());
    forget_next(keys[0]);
    keys[0].set_mode(0644);
    CHECK(a->reload_keys().error().code == Errc::permission);
    CHECK(a->key_names() == names);
    CHECK(ask(*a, at(*b, "b"), "echo x").ok());
    CHECK(a->figures().handshakes == 1);
  });
}

}  // namespace
}  // namespace weft
