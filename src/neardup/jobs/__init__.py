"""What is asked of documents, one file a job: a run and its adapters, and the questions about documents and runs."""
