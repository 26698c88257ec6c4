// A node that holds the cluster's key and has the bytes, and gives something else.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "blobs/local_bytes.h"
#include "conformance/tapped_transport.h"
#include "peers/answers.h"

namespace weft::hostile {

// What is wrong with its answers:
//   none       nothing
//   wrong      one byte of what was asked for
//   short, long  a byte too few, or too many
//   much       64 MiB more than was asked for
//   gone       the windows: nobody can read them
//   silent     no answer to who asks for bytes
//   miscoded, mistabled  a coded chunk, or the table of what is given; plain bytes are right
//   digests, manifest, holders  the answer to who asks for these is other bytes
bool is_fault(std::string_view name);

// What a store has, also when no daemon runs. Any thread.
class StoredBytes final : public LocalBytes {
 public:
  explicit StoredBytes(Store& store) : store_(store) {}
  Result<std::vector<OpenPlace>> here(std::span<const ChunkRun> runs) override;
  Result<std::vector<Digest>> digests(const ContentId& id) override;

 private:
  Store& store_;
};

// Any thread.
class HostileAnswers final : public PeerServer {
 public:
  HostileAnswers(Store& store, std::string fault)
      : fault_(std::move(fault)), bytes_(store), answers_(store, directory_, coding_) {
    answers_.begin(bytes_);
  }
  ~HostileAnswers() override { answers_.end(); }
  HostileAnswers(const HostileAnswers&) = delete;
  HostileAnswers& operator=(const HostileAnswers&) = delete;
  Result<PeerReply> answer(std::string_view node, std::span<const std::byte> request) override;

 private:
  bool concerns(const PeerRequest& asked) const;
  Result<PeerReply> spoiled(PeerReply reply) const;
  static Result<PeerReply> miscoded(PeerReply reply);

  const std::string fault_;
  StoredBytes bytes_;
  PeerDirectory directory_;
  PeerCoding coding_;
  PeerAnswers answers_;
};

// Tells peers of windows that are not there.
class NoWindows final : public conformance::TappedTransport {
 public:
  explicit NoWindows(std::unique_ptr<Transport> below) : TappedTransport(std::move(below), [](auto) { return true; }) {}
  Result<std::unique_ptr<Window>> open_window(std::span<const std::byte> memory) override;
};

}  // namespace weft::hostile
