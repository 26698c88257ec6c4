// Keeps the transfers of a Fetcher, and the places of blobs that are not in the index yet.
//
// It has no thread and no lock: its owner guards it (FetchState), together with the FetchQueue.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "fetch/fetch_queue.h"
#include "fetch/transfer.h"
#include "weft/bytes/pack.h"
#include "weft/bytes/source.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"

namespace weft {

// The place of a blob in a transfer.
struct TransferPlace {
  std::shared_ptr<Transfer> transfer;
  std::uint64_t offset = 0;  // of the blob, in the transfer's pack
};

class TransferTable {
 public:
  using Clock = Transfer::Clock;
  using Transfers = std::set<std::shared_ptr<Transfer>>;

  // `kept`: an unused transfer is dropped after this time. The other arguments outlive this.
  TransferTable(FetchQueue& queue, const SwarmFetch& swarm, Clock::duration kept)
      : queue_(queue), swarm_(swarm), kept_(kept) {}

  void add(const std::shared_ptr<Transfer>& transfer);
  std::size_t size() const { return transfers_.size(); }
  // Returns the place of a blob that is not in the index yet; null if no transfer has it.
  const TransferPlace* find(const ContentId& blob) const;
  // Returns the place of a run in a transfer, if all of the run has arrived; else a place without a pack.
  OpenPlace arrived(const ChunkRun& run) const;
  bool fills(PackId pack) const;       // a transfer fills this pack
  std::uint64_t coming_bytes() const;  // of running units, which may not have disk blocks yet
  // Returns the disk bytes of the packs that are not among `listed`.
  std::uint64_t unlisted_bytes(const std::set<PackId>& listed) const;

  // Returns a transfer whose complete blobs should enter the index now; null: none. `all`: without waiting for more.
  std::shared_ptr<Transfer> due(bool all) const;
  // Records the result of adding blobs of a transfer to the index. The table forgets their places.
  void added(Transfer& transfer, std::span<const FetchedBlob> blobs, const Status& added);
  // Returns the result of indexing all complete blobs of a version, once. Nothing while blobs are missing in the index;
  // their transfers then hurry. `others`: transfers of other versions that count too.
  std::optional<Status> indexed(VersionId version, const Transfers& others);
  // Returns the transfers of those blobs that are missing in the index.
  Transfers holders(std::span<const ContentId> blobs) const;
  void hurry_complete();  // complete transfers should enter the index, because only indexed packs can be evicted

  // Drops transfers that are complete or unused. Their readers keep the runs they have; the next request for a missing
  // blob begins a new transfer.
  void drop_idle();
  // As drop_idle(). Transfers that were not used for this time are unused.
  void drop_unused(Clock::duration unused);
  // Closes idle transfers. True: some of their blobs enter the index first. Call it again then, or drop_idle() at last.
  bool close_idle();
  // Closes complete and unread transfers. False: there are none.
  bool close_unread();

 private:
  bool is_past(const std::shared_ptr<Transfer>& transfer) const;
  void forget_place(const ContentId& blob, const Transfer& transfer);

  FetchQueue& queue_;
  const SwarmFetch& swarm_;
  const Clock::duration kept_;
  std::vector<std::shared_ptr<Transfer>> transfers_;
  std::unordered_map<ContentId, TransferPlace> places_;  // by blob
};

}  // namespace weft
