// Serves the versions of a store to clients of a model hub: the handler of an HTTP server. Read only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/worker.h"
#include "endpoint/arriving_content.h"
#include "endpoint/hub_counts.h"
#include "endpoint/hub_route.h"
#include "endpoint/served_store.h"
#include "endpoint/token_file.h"
#include "http/message.h"
#include "upstream/upstream.h"
#include "weft/bytes/cold.h"
#include "weft/programs/vfs.h"
#include "weft/store/store.h"

namespace weft {

// Any thread.
class HubEndpoint {
 public:
  // `cold` fetches manifests and bytes of other nodes. With a token, requests without it get 401. Without one,
  // requests whose host is neither localhost nor an address get 403, and with an upstream also those that a page of
  // another site has sent. `upstream` pulls what the store lacks; null: that is an error 404. `arriving` are the files
  // of its pulls, which clients read before the end; null: they wait. All references outlive this, and this outlives
  // the server.
  HubEndpoint(Store& store, ColdReads& cold, std::optional<HubToken> token, Upstream* upstream = nullptr,
              IncomingFiles* arriving = nullptr);

  // Answers a request. Waits for bytes of other nodes, until the client leaves, and for the upstream as long as clients
  // wait for an answer.
  HttpReply reply(const HttpRequest& request);
  const HubCounts& counts() const { return counts_; }

 private:
  struct Asked;  // a request, with the version that it names
  std::optional<HttpReply> refusal_of(const HttpRequest& request) const;
  HttpReply routed(const HttpRequest& request, const std::vector<HubRoute>& routes);
  HttpReply answer(const HttpRequest& request, const HubRoute& route, const ModelRow& model);
  HttpReply handled(const Asked& asked);
  // Returns the answer from the upstream. Nothing: it has no such repository, or it has no such revision or fails and
  // the store has another version to serve (`has_other`).
  std::optional<HttpReply> pulled(const HttpRequest& request, const HubRoute& route, bool has_other = false);
  // Returns the answer with bytes of a file that arrives. Nothing: the first ones are not here yet, or the answer would
  // end before the file does, whose last byte shows whether all are right.
  std::optional<HttpReply> arriving(const HttpRequest& request, const HubRoute& route, const HubSource& source,
                                    const UpstreamCommit& commit);
  ArrivingContent::ReadStored stored_reader(const HttpRequest& request, const HubSource& source,
                                            const std::string& commit, const HubFile& file);
  HttpReply stored(const HttpRequest& request, const HubRoute& route, const std::string& commit);
  HttpReply failed(const HttpRequest& request, const Error& error);
  HttpReply no_entry(const Asked& asked, const Error& error);

  Result<HttpReply> info(const Asked& asked);
  Result<HttpReply> tree(const Asked& asked);
  Result<HttpReply> paths(const Asked& asked);
  Result<HttpReply> refs(const Asked& asked);
  Result<HttpReply> file(const Asked& asked);
  Result<HttpReply> bytes_of(const Asked& asked, const ServedEntry& entry, HttpReply reply, const HttpPart& part);

  Store& store_;
  const std::optional<HubToken> token_;
  Upstream* const upstream_;
  IncomingFiles* const arriving_;
  const std::unique_ptr<Vfs> vfs_;
  const ServedStore served_;
  HubCounts counts_;
  RareLines rare_;
  Worker trimming_;
};

}  // namespace weft
