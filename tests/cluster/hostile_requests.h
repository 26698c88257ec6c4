// Attacks by a holder of the cluster's key, who makes many requests of swarms under many names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "hostile_frames.h"
#include "hostile_talk.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store/store.h"

namespace weft::hostile {

// The requests:
//   unknown     Wants of versions that no node has, each with the longest set of units
//   oversized   Wants of a version that the daemon has, with a set that is too long for it
//   undersized  Wants of that version, with a set that is a byte too short
//   beyond      Wants of that version, with a set that has a unit beyond the last one
//   unclosed    Wants of that version that lack every unit. No answer is ever closed
//   takes       as unclosed, but the asker is hungry and the daemon is the source. It closes each answer at once, as if
//               it had read the unit, and sends another Want
//   joins       Joins of versions that no node has, another one each time
//   newcomers   Joins of that version, each of another one of 500 nodes; not faster than one in a millisecond
// All others come from 64 nodes.
bool is_request(std::string_view what);

struct Attack;
struct KnownVersion {
  Digest manifest;
  std::uint32_t units = 0;
};

// Sessions under many names, which stay open.
class Askers {
 public:
  // Requests so far, and frames that came back.
  struct Heard {
    std::size_t requests = 0;
    std::size_t frames = 0;  // also those that opened the sessions
    std::size_t answers = 0;
    std::size_t given = 0;              // answers with a unit, or with the name of a partner
    std::size_t busy = 0, invalid = 0;  // failures with these errors
  };

  explicit Askers(std::string_view what);  // is_request()

  // open(), send() and hear() on one thread at a time, in this order.
  Status open(const Victim& victim, const std::string& key_file);
  // Sends `count` requests in turn, slowly enough that the daemon does not refuse most of them unseen. `has` has the
  // version.
  Status send(std::size_t count, Store& has);
  [[noreturn]] void hear();  // reads the answers
  Heard heard() const;       // any thread

 private:
  Status ask(std::size_t name);
  void count(std::size_t name, const net::CallBody& body);
  void take_more(std::size_t name, const net::CallBody& body);

  const Attack& attack_;
  Line line_;
  KnownVersion known_;
  std::vector<std::unique_ptr<Talk>> talks_;  // by name
  std::vector<std::uint64_t> calls_;          // made so far, by name
  mutable std::mutex mutex_;
  Heard heard_;  // guarded by mutex_
};

}  // namespace weft::hostile
