// Attacks by a holder of the cluster's key, who makes many requests of swarms under many names. It reads no answer.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hostile_frames.h"
#include "hostile_talk.h"
#include "weft/result.h"
#include "weft/store/store.h"

namespace weft::hostile {

// The requests:
//   unknown   Wants of versions that no node has, each with the longest set of units
//   oversized Wants of a version that the daemon has, with a set that is too long for it
//   unclosed  Wants of that version that lack every unit. No answer is ever closed
//   joins     Joins of versions that no node has, another one each time
bool is_request(std::string_view what);

// Sessions under many names, which stay open. One thread at a time.
class Askers {
 public:
  static constexpr std::size_t kNames = 64;

  Status open(const Victim& victim, const std::string& key_file);
  // Sends `count` requests in turn, slowly enough that the daemon does not refuse most of them unseen. `has` has the
  // version.
  Status send(std::string_view what, std::size_t count, Store& has);
  std::size_t sent() const { return sent_; }           // requests
  std::size_t heard() const { return line_.heard(); }  // frames, also those that opened the sessions

 private:
  Line line_;
  std::vector<std::unique_ptr<Talk>> talks_;
  std::size_t sent_ = 0;
};

}  // namespace weft::hostile
