// Answers what other daemons ask of this one: manifests, digests, bytes that are here and verified, who has what.
#pragma once

#include <cstddef>
#include <shared_mutex>
#include <span>
#include <string_view>

#include "blobs/local_bytes.h"
#include "peers/directory.h"
#include "peers/given_lately.h"
#include "peers/giving_now.h"
#include "peers/messages.h"
#include "weft/exchange.h"
#include "weft/store.h"

namespace weft {

// Any thread.
class PeerAnswers final : public PeerServer {
 public:
  PeerAnswers(Store& store, PeerDirectory& directory) : store_(store), directory_(directory) {}  // these outlive it

  // From now on it answers; before, and after end(), every call is Errc::unreachable.
  void begin(LocalBytes& bytes);
  void end();  // waits for answers that are being made; they use `bytes`

  Result<PeerReply> answer(std::string_view node, std::span<const std::byte> request) override;

 private:
  Result<PeerReply> give(const AskManifest& ask);
  Result<PeerReply> give(const AskChunks& ask);
  Result<PeerReply> give(std::string_view node, const AskBytes& ask);

  Store& store_;
  PeerDirectory& directory_;
  std::shared_mutex gate_;
  LocalBytes* bytes_ = nullptr;  // guarded by gate_
  GivenLately given_;
  GivingNow giving_;
};

}  // namespace weft
