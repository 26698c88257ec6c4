// A node that holds the cluster's key and the bytes, and serves something else.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "blobs/local_bytes.h"
#include "conformance/tapped_transport.h"
#include "peers/answers.h"

namespace weft::hostile {

// Faults of its answers:
//   none       no fault
//   wrong      one byte of the requested bytes is wrong
//   short, long  one byte too few, or one too many
//   much       additional windows of 1 MiB, up to 63 windows
//   gone       windows that cannot be read
//   silent     requests for bytes are answered too late, after 30 s
//   miscoded, mistabled  a wrong byte in a coded chunk, or in the table of the answer; plain bytes are right
//   digests, manifest, holders  random bytes as the answer to this request
bool is_fault(std::string_view name);

// The bytes of a store, served without a daemon. Any thread.
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

// A transport that reports windows with wrong keys.
class NoWindows final : public conformance::TappedTransport {
 public:
  explicit NoWindows(std::unique_ptr<Transport> below) : TappedTransport(std::move(below), [](auto) { return true; }) {}
  ~NoWindows() override { end(); }
  Result<std::unique_ptr<Window>> open_window(std::span<const std::byte> memory) override;
};

}  // namespace weft::hostile
