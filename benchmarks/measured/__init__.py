"""Problems from measured data, and the models fitted to them."""
