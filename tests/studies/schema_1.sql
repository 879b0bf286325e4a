BEGIN TRANSACTION;
CREATE TABLE botorch_ext_events (
	study INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	at DOUBLE NOT NULL, 
	body TEXT NOT NULL, 
	digest VARCHAR(32) NOT NULL, 
	PRIMARY KEY (study, number), 
	FOREIGN KEY(study) REFERENCES botorch_ext_studies (id)
)
 WITHOUT ROWID

;
INSERT INTO "botorch_ext_events" VALUES(1,0,1795415041.22812,'{"event":"asked","id":0,"x":[-0.9521628400575259,3.697105596375999],"context":null,"info":{}}','6288b6be942e95af235a33fe5e3fb8d9');
INSERT INTO "botorch_ext_events" VALUES(1,1,1.79541504122814798353e+09,'{"event":"asked","id":1,"x":[-0.7122009680739043,3.337544736237363],"context":null,"info":{}}','fd87bae17bb628a96953637992db379e');
INSERT INTO "botorch_ext_events" VALUES(1,2,1.79541504122816085809e+09,'{"event":"asked","id":2,"x":[0.3412266463444613,4.649489775168001],"context":null,"info":{}}','6a3e47e4703c8fd42d4a3be3f85c521f');
INSERT INTO "botorch_ext_events" VALUES(1,3,1.79541504123058962821e+09,'{"event":"told","id":0,"value":0.5}','1b89f4de975e1f96e85eebf51c65ca03');
INSERT INTO "botorch_ext_events" VALUES(1,4,1.79541504123470211026e+09,'{"event":"abandoned","id":2,"failed":true}','11b98515711a3bf428c96c1233022f57');
INSERT INTO "botorch_ext_events" VALUES(1,5,1.79541504124045181271e+09,'{"event":"attached","id":3,"x":[0.25,3.0],"context":null,"info":{"attached":true},"value":0.3333333333333333}','1d246a2346f5710e404e20a47837fac6');
INSERT INTO "botorch_ext_events" VALUES(1,6,1.7954150412489802837e+09,'{"event":"corrected","id":0,"value":0.1}','9acface25cdd3a3b97140d12632ad85b');
CREATE TABLE botorch_ext_studies (
	id INTEGER NOT NULL, 
	schema INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	minimize BOOLEAN NOT NULL, 
	description TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "botorch_ext_studies" VALUES(1,1,'kept',1,'{"versions":{"botorch-ext":"0.1.0","torch":"2.13.0+cpu","botorch":"0.18.1","gpytorch":"1.15.2"},"strategy":{"class":"RandomSearch","domain":{"class":"Box","bounds":{"dtype":"torch.float64","values":[[-1.0,2.0],[1.0,5.0]]},"integer":[],"log":[],"categories":{},"constraints":null},"seed":3,"initial":null,"num_initial":0,"context_domain":null}}');
COMMIT;
